#include "notice/outbox.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/queue.h"
#include "notice/notice.h"

#define CAPACITY 64

struct outbox {
	struct queue *queue;
};

struct outbox *
outbox_new(struct error *error)
{
	struct outbox *outbox = calloc(1, sizeof(*outbox));

	if (outbox == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	outbox->queue = queue_new(CAPACITY, error);
	if (outbox->queue == NULL) {
		free(outbox);
		return NULL;
	}
	return outbox;
}

int
outbox_put(struct outbox *outbox, const struct notice *notice)
{
	struct notice *copy = malloc(sizeof(*copy));

	if (copy == NULL)
		return -1;
	*copy = *notice;
	if (queue_try_put(outbox->queue, copy) != 0) {
		free(copy);
		return -1;
	}
	return 0;
}

bool
outbox_take(struct outbox *outbox, struct notice *notice)
{
	struct notice *oldest = queue_take(outbox->queue, 0);

	if (oldest == NULL)
		return false;
	*notice = *oldest;
	free(oldest);
	return true;
}

int
outbox_fd(struct outbox *outbox)
{
	return queue_fd(outbox->queue);
}

void
outbox_free(struct outbox *outbox)
{
	struct notice *left;

	if (outbox == NULL)
		return;
	while ((left = queue_take(outbox->queue, 0)) != NULL)
		free(left);
	queue_free(outbox->queue);
	free(outbox);
}
