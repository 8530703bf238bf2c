#include "cmd/spectacle.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "life/report.h"
#include "life/thread.h"

struct spectacle {
	int (*work)(void *context);
	void *context;
	int result;
	_Atomic bool over;
};

static void *
run(void *context)
{
	struct spectacle *spectacle = context;

	spectacle->result = spectacle->work(spectacle->context);
	spectacle->over = true;
	return NULL;
}

int
spectacle_run(const char *what, bool quiet, const struct progress *progress,
    int (*work)(void *context), void *context, struct error *error)
{
	struct spectacle spectacle = { .work = work, .context = context };
	struct report_line line;
	pthread_t thread;

	report_line_start(&line, quiet);
	if (!line.terminal)
		return work(context);
	if (thread_start(&thread, run, &spectacle, error) != 0)
		return -1;
	while (!spectacle.over) {
		clock_sleep(CLOCK_SECOND / 20);
		report_line_show(&line, what, progress->done, progress->total,
		    false);
	}
	pthread_join(thread, NULL);
	report_line_clear(&line);
	return spectacle.result;
}
