#include "cmd/command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "life/checkup.h"
#include "life/finding.h"

/* Where messages begin and end. */
#define COLUMN 22
#define WIDTH 79

struct tally {
	const struct options *options;
	json_t *findings;	/* --json */
	bool incomplete;	/* memory ran out for it */
	size_t counts[4];	/* by enum finding_state */
};

/* Print ${text} from COLUMN on, broken at blanks. */
static void
print_wrapped(const char *text)
{
	int at = COLUMN;

	while (*text != '\0') {
		int length = (int)strcspn(text, " ");

		if (at > COLUMN && at + 1 + length > WIDTH) {
			printf("\n%*s", COLUMN, "");
			at = COLUMN;
		} else if (at > COLUMN) {
			putchar(' ');
			at++;
		}
		printf("%.*s", length, text);
		at += length;
		text += length;
		text += *text == ' ';
	}
	putchar('\n');
}

static void
print_finding(const struct finding *finding)
{
	char check[COLUMN];
	size_t i;

	for (i = 0; finding->check[i] != '\0' && i + 1 < sizeof(check); i++)
		check[i] = finding->check[i] == '_' ? ' ' : finding->check[i];
	check[i] = '\0';
	printf("%-8s %-12s ", finding->state == FINDING_WRONG ? "WRONG" :
	    finding_state_text(finding->state), check);
	print_wrapped(finding->message);
	if (finding->cure[0] != '\0') {
		printf("%*s", COLUMN - 4, "");
		printf("->  ");
		print_wrapped(finding->cure);
	}
	fflush(stdout);
}

static int
add_finding(json_t *findings, const struct finding *finding)
{
	json_t *object = json_pack("{s:s, s:s, s:o}", "check", finding->check,
	    "state", finding_state_text(finding->state), "message",
	    json_text(finding->message));

	if (object == NULL)
		return -1;
	if ((finding->cure[0] != '\0' && json_object_set_new(object, "cure",
	    json_text(finding->cure)) != 0) || (finding->facts != NULL &&
	    json_object_update(object, finding->facts) != 0)) {
		json_decref(object);
		return -1;
	}
	return json_array_append_new(findings, object);
}

static void
tell(void *context, const struct finding *finding)
{
	struct tally *tally = context;

	tally->counts[finding->state]++;
	if (!tally->options->json)
		print_finding(finding);
	else if (add_finding(tally->findings, finding) != 0)
		tally->incomplete = true;
}

static void
print_places(const struct options *options)
{
	const char *folder = options->settings.folder;
	const char *url = options->settings.url;

	if (folder != NULL) {
		output_name(folder);
		if (url != NULL)
			fputs(" -> ", stdout);
	}
	if (url != NULL)
		output_name(url);
	puts(folder == NULL && url == NULL ? "this machine" : "");
}

static int
finish(struct tally *tally)
{
	const char *folder = tally->options->settings.folder;
	const char *url = tally->options->settings.url;
	size_t wrong = tally->counts[FINDING_WRONG];
	size_t hints = tally->counts[FINDING_HINT];
	int status = wrong > 0 ? ERROR_FAILED : ERROR_NONE, printed;
	json_t *object;

	if (!tally->options->json) {
		if (wrong == 0)
			fputs("nothing is wrong", stdout);
		else
			printf("%zu wrong", wrong);
		if (hints > 0)
			printf(", %zu hint%s", hints, hints == 1 ? "" : "s");
		if (tally->counts[FINDING_LEFT_OUT] > 0)
			printf(", %zu left out",
			    tally->counts[FINDING_LEFT_OUT]);
		putchar('\n');
		return output_finish(status);
	}
	object = tally->incomplete ? NULL : json_pack("{s:I, s:I, s:I, s:O}",
	    "wrong", (json_int_t)wrong, "hints", (json_int_t)hints,
	    "left_out", (json_int_t)tally->counts[FINDING_LEFT_OUT],
	    "findings", tally->findings);
	if (object != NULL && folder != NULL)
		json_set_name(object, "folder", folder);
	if (object != NULL && url != NULL)
		json_set_name(object, "remote", url);
	printed = output_json(object);
	return printed != 0 ? printed : status;
}

int
command_doctor(const struct options *options)
{
	struct tally tally = { .options = options,
	    .findings = json_array() };
	struct error error = ERROR_INIT;
	int result, status;
	bool hangs;

	/* A reader that has seen enough must not keep us from cleaning up. */
	signal(SIGPIPE, SIG_IGN);
	if (!options->json)
		print_places(options);
	result = checkup_run(&options->settings, tell, &tally, &hangs,
	    &error);
	if (result > 0) {
		signal(result, SIG_DFL);
		raise(result);
	}
	status = result != 0 ? output_failure(options, &error) :
	    finish(&tally);
	json_decref(tally.findings);
	if (hangs)
		_exit(status);	/* under the feet of a thread */
	return status;
}
