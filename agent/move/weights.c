#include "move/weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/splice.h"
#include "move/gather.h"
#include "move/remote_file.h"

/* What may be fetched besides, so that near ranges become one request: far
 * below the 2 % and the mebibyte that all of it may cost. */
#define SLACK_SHARE 256
#define SLACK UINT64_C(131072)

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

/* The bits of one tensor. */
static void
add_tensor(struct weights_plan *plan, size_t item)
{
	const struct tensor *tensor = &plan->model->tensors[item];
	enum tensor_type type = plan->outline->types[item];
	const struct tensor_piece *piece;
	uint64_t length, place;
	bool turned = false;
	size_t i;

	/* All of it or nothing: its checksum is of one run. */
	for (i = 0; i < tensor->piece_count; i++)
		turned |= gather_span(tensor, &tensor->pieces[i]) > 0 &&
		    !gather_is_run(tensor, &tensor->pieces[i], type, &place);
	for (i = 0; i < tensor->piece_count; i++) {
		piece = &tensor->pieces[i];
		place = 0;
		if ((length = gather_span(tensor, piece)) == 0)
			continue;
		if (!turned)
			gather_is_run(tensor, piece, type, &place);
		plan->bits[plan->bit_count++] = (struct weights_bit){
			.file = piece->file,
			.from = piece->offset,
			.length = length,
			.item = item,
			.turned = turned,
			.to = turned ? 0 : plan->outline->places[item] + place
		};
	}
}

static int
compare_bits(const void *a, const void *b)
{
	const struct weights_bit *left = a, *right = b;

	if (left->file != right->file)
		return left->file < right->file ? -1 : 1;
	if (left->from != right->from)
		return left->from < right->from ? -1 : 1;
	return (left->item > right->item) - (left->item < right->item);
}

/* The parts of ${bit} that are in the cache and that are not, each a bit. */
static int
split_bit(const struct weights *weights, const struct weights_bit *bit,
    struct weights_bit **bits, size_t *count, size_t *capacity,
    struct error *error)
{
	struct weights_bit part, *larger;
	uint64_t at;

	for (at = 0; at < bit->length; at += part.length) {
		part = *bit;
		part.from += at;
		part.to += bit->turned ? 0 : at;
		part.length -= at;
		if (weights->set != NULL)
			part.data = remote_file_cached(weights->set,
			    weights->entries[bit->file], part.from,
			    &part.length);
		if (*count == *capacity) {
			*capacity = *capacity * 2 + 64;
			larger = realloc(*bits, *capacity * sizeof(**bits));
			if (larger == NULL)
				return out_of_memory(error);
			*bits = larger;
		}
		(*bits)[(*count)++] = part;
	}
	return 0;
}

static int
split_bits(const struct weights *weights, struct weights_plan *plan,
    struct error *error)
{
	struct weights_bit *bits = NULL;
	size_t i, count = 0, capacity = 0;

	for (i = 0; i < plan->bit_count; i++)
		if (split_bit(weights, &plan->bits[i], &bits, &count,
		    &capacity, error) == -1) {
			free(bits);
			return -1;
		}
	free(plan->bits);
	plan->bits = bits;
	plan->bit_count = count;
	return 0;
}

/* What has to be fetched for the bits. */
static int
plan_fetch(struct weights *weights, struct weights_plan *plan,
    struct error *error)
{
	const struct weights_bit *bit;
	uint64_t wanted = 0, end = 0;
	size_t i;

	qsort(plan->bits, plan->bit_count, sizeof(*plan->bits), compare_bits);
	if (weights->backend == NULL)
		return 0;
	if (split_bits(weights, plan, error) == -1)
		return -1;
	plan->wishes = calloc(plan->bit_count + 1, sizeof(*plan->wishes));
	if (plan->wishes == NULL)
		return out_of_memory(error);
	for (i = 0; i < plan->bit_count; i++) {
		bit = &plan->bits[i];
		plan->wishes[i] = (struct ranges_wish){
			.entry = weights->entries[bit->file],
			.offset = bit->from,
			.length = bit->data == NULL ? bit->length : 0
		};
		if (i == 0 || bit->file != bit[-1].file)
			end = 0;
		if (bit->from + bit->length <= end)
			continue;
		wanted += bit->from + bit->length -
		    (bit->from > end ? bit->from : end);
		end = bit->from + bit->length;
	}
	if (ranges_make(weights->manifest, plan->wishes, plan->bit_count,
	    wanted / SLACK_SHARE + SLACK, &plan->ranges, error) == -1)
		return -1;
	plan->fetch_bytes = plan->ranges.bytes;
	return 0;
}

int
weights_plan_model(struct weights *weights, const struct model *model,
    enum model_output output, const enum tensor_type *convert,
    struct weights_plan *plan, struct error *error)
{
	size_t i, pieces = 0;

	memset(plan, 0, sizeof(*plan));
	plan->model = model;
	plan->items = model->count;
	plan->outline = &plan->own;
	if (model_outline_make(model, output, convert, &plan->own,
	    error) == -1)
		return -1;
	plan->size = plan->own.size;
	for (i = 0; i < model->count; i++)
		pieces += model->tensors[i].piece_count;
	plan->bits = calloc(pieces + 1, sizeof(*plan->bits));
	if (plan->bits == NULL)
		return out_of_memory(error);
	for (i = 0; i < model->count; i++)
		add_tensor(plan, i);
	return plan_fetch(weights, plan, error);
}

int
weights_plan_splice(struct weights *weights, struct splice *splice,
    struct weights_plan *plan, struct error *error)
{
	size_t i;

	assert(weights->count == 1);
	memset(plan, 0, sizeof(*plan));
	plan->outline = &splice->outline;
	plan->size = splice->outline.size;
	plan->items = splice->count;
	plan->bits = calloc(splice->count + 1, sizeof(*plan->bits));
	if (plan->bits == NULL)
		return out_of_memory(error);
	for (i = 0; i < splice->count; i++)
		if (splice->copies[i].length > 0)
			plan->bits[plan->bit_count++] = (struct weights_bit){
				.from = splice->copies[i].from,
				.length = splice->copies[i].length,
				.item = i,
				.to = splice->outline.places[i]
			};
	return plan_fetch(weights, plan, error);
}

int
weights_plan_part(struct weights *weights, const struct model_part *part,
    struct weights_plan *plan, struct error *error)
{
	memset(plan, 0, sizeof(*plan));
	plan->outline = &plan->own;
	plan->size = plan->own.size = part->length;
	plan->items = 1;
	plan->bits = calloc(1, sizeof(*plan->bits));
	if (plan->bits == NULL)
		return out_of_memory(error);
	if (part->length > 0)
		plan->bits[plan->bit_count++] = (struct weights_bit){
			.file = part->file,
			.from = part->offset,
			.length = part->length
		};
	return plan_fetch(weights, plan, error);
}

void
weights_plan_free(struct weights_plan *plan)
{
	ranges_free(&plan->ranges);
	model_outline_free(&plan->own);
	free(plan->wishes);
	free(plan->bits);
	memset(plan, 0, sizeof(*plan));
}
