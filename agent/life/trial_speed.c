#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/source.h"
#include "life/batch.h"
#include "life/trial.h"
#include "store/backend.h"

/* As many as move/sender.c has in flight. */
#define AT_ONCE 16
#define SMALLEST (64u << 10)
#define LARGEST (2u << 20)
#define ALL (UINT64_C(32) << 20)
#define WAVES 8

/* What ends so close before the deadline was ended by it. */
#define SLACK (100 * CLOCK_MILLISECOND)

/* Each body begins at another place of the same random bytes. */
#define SHIFT 64

struct sending {
	struct trial *trial;
	unsigned char *bytes;
	uint64_t end;		/* until when waves begin */
	uint64_t deadline;	/* of requests */
	uint64_t sent;		/* acknowledged */
	uint64_t time;		/* that this took, without hashing */
	bool late;		/* the time was over */
};

/* splitmix64, seeded by the kernel: nothing that could be compressed. */
static void
fill(unsigned char *data, size_t length)
{
	uint64_t state = random_bits(), z;

	for (size_t i = 0; i + sizeof(z) <= length; i += sizeof(z)) {
		z = (state += UINT64_C(0x9e3779b97f4a7c15));
		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		z ^= z >> 31;
		memcpy(data + i, &z, sizeof(z));
	}
}

static int
take_wave(struct sending *sending, const struct batch_item *items,
    size_t count, uint64_t began, struct error *error)
{
	uint64_t ended = began;
	int result = 0;

	for (size_t i = 0; i < count; i++) {
		const struct backend_request *request = &items[i].request;

		if (request->error.class == ERROR_NONE) {
			sending->sent += request->length;
			if (items[i].ended > ended)
				ended = items[i].ended;
		} else if (items[i].ended + SLACK >= sending->deadline) {
			sending->late = true;
			sending->trial->unanswered = true;
		} else if (result == 0) {
			*error = request->error;
			result = -1;
		}
	}
	sending->time += ended - began;
	return result;
}

/* AT_ONCE objects of ${size} bytes each, all at once. */
static int
send_wave(struct sending *sending, size_t size, struct error *error)
{
	struct batch_item items[AT_ONCE] = { 0 };
	struct source_memory memory[AT_ONCE];
	struct source bodies[AT_ONCE];
	char keys[AT_ONCE][KEY_SIZE];
	size_t count = 0;
	uint64_t began;

	for (; count < AT_ONCE && trial_key(sending->trial, keys[count]);
	    count++) {
		struct backend_request *request = &items[count].request;

		memory[count] = (struct source_memory){
		    sending->bytes + count * SHIFT, size };
		bodies[count] = source_from_memory(&memory[count]);
		*request = (struct backend_request){
		    .operation = BACKEND_PUT, .key = keys[count],
		    .body = &bodies[count], .length = size,
		    .deadline = sending->deadline };
		sha256_of(memory[count].data, size, request->sha256);
	}
	began = clock_monotonic();
	batch_run(sending->trial->backend, items, count);
	return take_wave(sending, items, count, began, error);
}

/* So large that two waves fill the time, at the speed seen so far. */
static size_t
choose_size(uint64_t bytes, uint64_t time, uint64_t left)
{
	double size = (double)bytes / (double)(time > 0 ? time : 1) *
	    (double)left / 2 / AT_ONCE;

	if (size >= LARGEST)
		return LARGEST;
	return size <= SMALLEST ? SMALLEST : (size_t)size;
}

static bool
is_over(const struct sending *sending)
{
	return sending->late || clock_monotonic() >= sending->end ||
	    atomic_load(sending->trial->stop);
}

static int
measure(struct sending *sending, struct trial_speed *speed,
    struct error *error)
{
	size_t size;

	/* The first wave opens the connections, and says how much to send. */
	if (send_wave(sending, SMALLEST, error) != 0)
		return -1;
	speed->bytes = sending->sent;
	speed->time = sending->time;
	if (is_over(sending))
		return 0;
	size = choose_size(sending->sent, sending->time,
	    sending->end - clock_monotonic());
	sending->sent = sending->time = 0;
	for (int i = 0; i < WAVES && sending->sent < ALL &&
	    !is_over(sending); i++)
		if (send_wave(sending, size, error) != 0)
			return -1;
	if (sending->sent > 0) {
		speed->bytes = sending->sent;
		speed->time = sending->time;
	}
	return 0;
}

int
trial_speed(struct trial *trial, uint64_t time, struct trial_speed *speed,
    struct error *error)
{
	uint64_t now = clock_monotonic();
	struct sending sending = { .trial = trial, .end = now + time,
	    .deadline = now + 2 * time };
	size_t length = LARGEST + AT_ONCE * SHIFT;
	int result;

	memset(speed, 0, sizeof(*speed));
	sending.bytes = malloc(length);
	if (sending.bytes == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	fill(sending.bytes, length);
	result = measure(&sending, speed, error);
	if (speed->bytes > 0 && speed->time > 0)
		speed->per_second = (uint64_t)((double)speed->bytes /
		    ((double)speed->time / (double)CLOCK_SECOND));
	free(sending.bytes);
	return result;
}
