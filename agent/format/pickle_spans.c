#include "format/pickle_spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/pickle.h"
#include "format/pickle_opcode.h"

/* Values and remembered ones together; 16 bytes each. */
#define VALUES_MAXIMUM 8000000

/* A place of the stack: a value with the run that pushed it. */
struct slot {
	size_t value;
	size_t start;
	size_t end;		/* of a recalled value; else it is the value's */
	bool recalled;		/* pushed from the memo: it was made elsewhere */
};

struct mark {
	size_t height;
	size_t start;		/* offset of the MARK */
};

/* The machine while it runs. */
struct tracer {
	struct pickle_spans *spans;
	struct error *error;
	struct slot *stack;
	size_t height, capacity;
	struct mark *marks;
	size_t mark_count, mark_capacity;
	size_t value_capacity, memo_capacity, pair_capacity;
};

static int
damaged(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	return error_set(tracer->error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "the pickle is damaged at byte %zu", opcode->start);
}

static int
unsupported(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	return error_set(tracer->error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
	    "the pickle was made in a way that is not known, at byte %zu",
	    opcode->start);
}

/* Room in ${row} for one more of ${size} bytes. */
static int
reserve(struct tracer *tracer, void **row, size_t count, size_t *capacity,
    size_t size)
{
	size_t wanted = *capacity == 0 ? 64 : 2 * *capacity;
	void *larger;

	if (count < *capacity)
		return 0;
	if (count >= VALUES_MAXIMUM)
		return error_set(tracer->error, ERROR_DAMAGED, CAUSE_LIMIT,
		    NULL, "the pickle holds more than %d values",
		    VALUES_MAXIMUM);
	larger = realloc(*row, wanted * size);
	if (larger == NULL)
		return error_set(tracer->error, ERROR_FAILED, CAUSE_MEMORY,
		    NULL, "out of memory for a pickle");
	*row = larger;
	*capacity = wanted;
	return 0;
}

static int
push_slot(struct tracer *tracer, struct slot slot)
{
	void *row = tracer->stack;

	if (reserve(tracer, &row, tracer->height, &tracer->capacity,
	    sizeof(slot)) != 0)
		return -1;
	tracer->stack = row;
	tracer->stack[tracer->height++] = slot;
	return 0;
}

/* Push a value that is made from ${start} to the end of ${opcode}. */
static int
push_value(struct tracer *tracer, size_t start,
    const struct pickle_opcode *opcode)
{
	struct pickle_spans *spans = tracer->spans;
	void *row = spans->values;

	if (reserve(tracer, &row, spans->count, &tracer->value_capacity,
	    sizeof(*spans->values)) != 0)
		return -1;
	spans->values = row;
	spans->values[spans->count] = (struct pickle_span){ start,
		opcode->end };
	return push_slot(tracer, (struct slot){ .value = spans->count++,
	    .start = start });
}

static size_t
floor_of(const struct tracer *tracer)
{
	return tracer->mark_count == 0 ? 0 :
	    tracer->marks[tracer->mark_count - 1].height;
}

/* Where ${slot} ends. */
static size_t
end_of(const struct tracer *tracer, const struct slot *slot)
{
	return slot->recalled ? slot->end :
	    tracer->spans->values[slot->value].end;
}

/* Replace the topmost ${count} by a value made of them. */
static int
combine(struct tracer *tracer, size_t count,
    const struct pickle_opcode *opcode)
{
	if (tracer->height - floor_of(tracer) < count)
		return damaged(tracer, opcode);
	tracer->height -= count;
	return push_value(tracer, count == 0 ? opcode->start :
	    tracer->stack[tracer->height].start, opcode);
}

static int
take_mark(struct tracer *tracer, const struct pickle_opcode *opcode,
    struct mark *mark)
{
	if (tracer->mark_count == 0)
		return damaged(tracer, opcode);
	*mark = tracer->marks[--tracer->mark_count];
	return 0;
}

static int
combine_marked(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	struct mark mark = { 0 };

	if (take_mark(tracer, opcode, &mark) != 0)
		return -1;
	tracer->height = mark.height;
	return push_value(tracer, mark.start, opcode);
}

static int
add_pair(struct tracer *tracer, const struct slot *key,
    const struct slot *value)
{
	struct pickle_spans *spans = tracer->spans;
	void *row = spans->pairs;

	if (reserve(tracer, &row, spans->pair_count, &tracer->pair_capacity,
	    sizeof(*spans->pairs)) != 0)
		return -1;
	spans->pairs = row;
	spans->pairs[spans->pair_count++] = (struct pickle_pair){
		{ key->start, end_of(tracer, key) },
		{ value->start, end_of(tracer, value) } };
	return 0;
}

/* What is above ${height} goes into what lies below it. */
static int
put_into(struct tracer *tracer, size_t height, bool pairs,
    const struct pickle_opcode *opcode)
{
	size_t count = tracer->height - height;
	struct slot *target;

	if (height <= floor_of(tracer))
		return damaged(tracer, opcode);
	target = &tracer->stack[height - 1];
	if (target->recalled)
		return unsupported(tracer, opcode);
	for (size_t i = 0; pairs && height == 1 && i + 1 < count; i += 2)
		if (add_pair(tracer, &tracer->stack[height + i],
		    &tracer->stack[height + i + 1]) != 0)
			return -1;
	tracer->height = height;
	tracer->spans->values[target->value].end = opcode->end;
	return 0;
}

static int
put_marked(struct tracer *tracer, bool pairs,
    const struct pickle_opcode *opcode)
{
	struct mark mark = { 0 };

	if (take_mark(tracer, opcode, &mark) != 0)
		return -1;
	return put_into(tracer, mark.height, pairs, opcode);
}

static int
put_top(struct tracer *tracer, size_t count, bool pairs,
    const struct pickle_opcode *opcode)
{
	if (tracer->height - floor_of(tracer) <= count)
		return damaged(tracer, opcode);
	return put_into(tracer, tracer->height - count, pairs, opcode);
}

static int
set_mark(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	void *row = tracer->marks;

	if (tracer->mark_count >= PICKLE_MARKS_MAXIMUM)
		return unsupported(tracer, opcode);
	if (reserve(tracer, &row, tracer->mark_count, &tracer->mark_capacity,
	    sizeof(*tracer->marks)) != 0)
		return -1;
	tracer->marks = row;
	tracer->marks[tracer->mark_count++] = (struct mark){ tracer->height,
		opcode->start };
	return 0;
}

static int
pop(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	if (tracer->height > floor_of(tracer))
		tracer->height--;
	else if (tracer->mark_count > 0)
		tracer->mark_count--;
	else
		return damaged(tracer, opcode);
	return 0;
}

static int
pop_mark(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	struct mark mark = { 0 };

	if (take_mark(tracer, opcode, &mark) != 0)
		return -1;
	tracer->height = mark.height;
	return 0;
}

/* Indexes come in rising order, so the memo stays sorted. */
static int
remember(struct tracer *tracer, uint64_t index,
    const struct pickle_opcode *opcode)
{
	struct pickle_spans *spans = tracer->spans;
	void *row = spans->memo;
	struct slot *top;

	if (tracer->height == floor_of(tracer))
		return damaged(tracer, opcode);
	top = &tracer->stack[tracer->height - 1];
	if (top->recalled || (spans->memo_count > 0 &&
	    index <= spans->memo[spans->memo_count - 1].index))
		return unsupported(tracer, opcode);
	if (reserve(tracer, &row, spans->memo_count, &tracer->memo_capacity,
	    sizeof(*spans->memo)) != 0)
		return -1;
	spans->memo = row;
	spans->memo[spans->memo_count++] = (struct pickle_memo){ index,
		opcode->start, top->value };
	spans->values[top->value].end = opcode->end;
	return 0;
}

static int
recall(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	const struct pickle_memo *memo = pickle_spans_memo(tracer->spans,
	    opcode->number);

	if (memo == NULL)
		return damaged(tracer, opcode);
	return push_slot(tracer, (struct slot){ .value = memo->value,
	    .start = opcode->start, .end = opcode->end, .recalled = true });
}

/* BUILD adds to the value below its state. */
static int
step(struct tracer *tracer, const struct pickle_opcode *opcode)
{
	switch (opcode->code) {
	case 0x80: case 0x95: return 0;
	case '(': return set_mark(tracer, opcode);
	case '0': return pop(tracer, opcode);
	case '1': return pop_mark(tracer, opcode);
	case '2': return unsupported(tracer, opcode);
	case 0x85: case 'Q': return combine(tracer, 1, opcode);
	case 0x86: case 'R': case 0x81: case 0x93:
		return combine(tracer, 2, opcode);
	case 0x87: case 0x92: return combine(tracer, 3, opcode);
	case 't': case 'l': case 'd': case 0x91:
		return combine_marked(tracer, opcode);
	case 'a': case 'b': return put_top(tracer, 1, false, opcode);
	case 's': return put_top(tracer, 2, true, opcode);
	case 'e': case 0x90: return put_marked(tracer, false, opcode);
	case 'u': return put_marked(tracer, true, opcode);
	case 'q': case 'r': return remember(tracer, opcode->number, opcode);
	case 0x94:
		return remember(tracer, tracer->spans->memo_count, opcode);
	case 'h': case 'j': return recall(tracer, opcode);
	default: return push_value(tracer, opcode->start, opcode);
	}
}

static int
run(struct tracer *tracer)
{
	struct pickle_spans *spans = tracer->spans;
	struct pickle_opcode opcode = { .end = 0 };

	do {
		size_t at = opcode.end;

		if (pickle_opcode_read(spans->bytes, spans->length, at,
		    &opcode) != 0) {
			opcode.start = at;
			return damaged(tracer, &opcode);
		}
		if (opcode.code == '.')
			break;
		if (step(tracer, &opcode) != 0)
			return -1;
	} while (true);
	if (tracer->height != 1 || tracer->mark_count != 0 ||
	    opcode.end != spans->length)
		return damaged(tracer, &opcode);
	return 0;
}

int
pickle_spans_make(const uint8_t *bytes, size_t length,
    struct pickle_spans *spans, struct error *error)
{
	struct tracer tracer = { .spans = spans, .error = error };
	int result;

	memset(spans, 0, sizeof(*spans));
	spans->bytes = bytes;
	spans->length = length;
	result = run(&tracer);
	free(tracer.stack);
	free(tracer.marks);
	return result;
}

const struct pickle_memo *
pickle_spans_memo(const struct pickle_spans *spans, uint64_t index)
{
	size_t low = 0, high = spans->memo_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->memo[middle].index == index)
			return &spans->memo[middle];
		if (spans->memo[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void
pickle_spans_free(struct pickle_spans *spans)
{
	free(spans->values);
	free(spans->memo);
	free(spans->pairs);
	memset(spans, 0, sizeof(*spans));
}
