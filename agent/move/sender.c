#include "move/sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "store/backend.h"
#include "store/writer.h"
#include "move/flight.h"
#include "move/pieces.h"
#include "move/shelf.h"
#include "move/upload.h"

#define IN_FLIGHT_DEFAULT 16

/* A chunk that something lies in. */
struct slot {
	enum { SLOT_GATHERING, SLOT_SENDING, SLOT_STORED, SLOT_LOST } state;
	uint32_t same_as;	/* another slot, when that is the same chunk */
	uint64_t size;
	uint8_t digest[SHA256_SIZE];
	char *key;
};

struct lane {
	struct shelf *shelf;	/* NULL: nothing gathered */
	uint32_t slot;
	uint64_t counted;	/* of the shelf's bytes, in the progress */
};

struct sender {
	struct upload *upload;
	uint64_t attempt;
	uint64_t target;
	struct flight *flight;
	struct pieces *pieces;
	struct slot *slots;
	size_t count;
	size_t capacity;
	struct lane lanes[SENDER_LANES];
	bool fresh;
	uint64_t stored;
	uint64_t reused;
};

/* A PUT on its way. */
struct sending {
	struct flight_request flight;	/* first: the flight knows only this */
	uint32_t slot;
	enum sender_lane lane;
	uint64_t counted;
	struct shelf *shelf;		/* the body, when it was gathered */
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

/* A PUT has ended. */
static int
landed(void *context, struct flight_request *request, struct error *error)
{
	struct sending *sending = (struct sending *)request;
	struct backend_request *put = &request->request;
	struct sender *sender = context;
	struct slot *slot = &sender->slots[sending->slot];
	int result = 0;

	if (put->error.class == ERROR_NONE) {
		slot->state = SLOT_STORED;
		sender->stored += slot->size;
		sender->upload->progress.moved += slot->size;
		sender->upload->progress.done += sending->counted;
		if (writer_stored(sender->upload->writer, sender->attempt,
		    slot->digest, slot->size) == -1)
			result = out_of_memory(error);
	} else {
		slot->state = SLOT_LOST;
		if (sending->lane != SENDER_COMPANIONS) {
			*error = put->error;
			if (error->cause == CAUSE_REFUSED)
				error->cause = CAUSE_CHANGED;
			result = -1;
		}
	}
	shelf_free(sending->shelf);
	free(sending);
	return result;
}

struct sender *
sender_new(struct upload *upload, uint64_t attempt, uint64_t target,
    struct error *error)
{
	struct flight_options options = {
		.backend = upload->backend,
		.limit = upload->in_flight > 0 ?
		    upload->in_flight : IN_FLIGHT_DEFAULT,
		.cancel = &upload->cancel,
		.deadline = &upload->deadline,
		.landed = landed
	};
	struct sender *sender;

	if ((sender = calloc(1, sizeof(*sender))) == NULL) {
		out_of_memory(error);
		return NULL;
	}
	sender->upload = upload;
	sender->attempt = attempt;
	sender->target = target;
	options.context = sender;
	if ((sender->pieces = pieces_new(error)) == NULL ||
	    (sender->flight = flight_new(&options, error)) == NULL) {
		sender_free(sender);
		return NULL;
	}
	return sender;
}

int
sender_check(struct sender *sender, struct error *error)
{
	return flight_check(sender->flight, error);
}

/* A new slot; its number in *${number}. */
static int
slot_new(struct sender *sender, uint32_t *number, struct error *error)
{
	size_t capacity = sender->capacity > 0 ? sender->capacity * 2 : 64;
	struct slot *slots;

	if (sender->count == UINT32_MAX)
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, NULL,
		    "too many chunks");
	if (sender->count == sender->capacity) {
		slots = realloc(sender->slots, capacity * sizeof(*slots));
		if (slots == NULL)
			return out_of_memory(error);
		sender->slots = slots;
		sender->capacity = capacity;
	}
	*number = (uint32_t)sender->count++;
	memset(&sender->slots[*number], 0, sizeof(*sender->slots));
	sender->slots[*number].same_as = *number;
	return 0;
}

static int
remember(struct sender *sender, const uint8_t digest[SHA256_SIZE],
    uint64_t length, uint32_t slot, uint64_t offset, struct error *error)
{
	struct piece piece = {
		.length = length, .offset = offset, .chunk = slot
	};

	memcpy(piece.digest, digest, SHA256_SIZE);
	return pieces_add(sender->pieces, &piece, error);
}

/* The slot of a chunk that is known whole, or UINT32_MAX. */
static uint32_t
slot_of(const struct sender *sender, const uint8_t digest[SHA256_SIZE],
    uint64_t size)
{
	const struct piece *piece = pieces_find(sender->pieces, digest, size);

	if (piece == NULL || piece->offset != 0 ||
	    sender->slots[piece->chunk].size != size)
		return UINT32_MAX;
	return piece->chunk;
}

/* Bytes that the store has already. */
static int
take_place(struct sender *sender, const struct sender_piece *piece,
    const struct writer_place *place, uint32_t *number, struct error *error)
{
	struct slot *slot;

	*number = slot_of(sender, place->digest, place->size);
	if (*number == UINT32_MAX) {
		if (slot_new(sender, number, error) == -1)
			return -1;
		slot = &sender->slots[*number];
		slot->state = SLOT_STORED;
		slot->size = place->size;
		memcpy(slot->digest, place->digest, SHA256_SIZE);
		if ((slot->key = strdup(place->key)) == NULL)
			return out_of_memory(error);
		if (remember(sender, place->digest, place->size, *number, 0,
		    error) == -1)
			return -1;
	}
	return remember(sender, piece->digest, piece->length, *number,
	    place->offset, error);
}

/* Store a chunk.  Owns ${shelf} from now on. */
static int
send_chunk(struct sender *sender, uint32_t number, enum sender_lane lane,
    uint64_t counted, const struct source *body, uint64_t offset,
    struct shelf *shelf, struct error *error)
{
	struct upload *upload = sender->upload;
	struct slot *slot = &sender->slots[number];
	struct sending *sending;
	char key[KEY_SIZE];

	if ((sending = calloc(1, sizeof(*sending))) == NULL ||
	    (slot->key = strdup(writer_chunk_key(upload->writer,
	    sender->attempt, slot->digest, key))) == NULL) {
		free(sending);
		shelf_free(shelf);
		return out_of_memory(error);
	}
	slot->state = SLOT_SENDING;
	sending->slot = number;
	sending->lane = lane;
	sending->counted = counted;
	sending->shelf = shelf;
	sending->flight.request = (struct backend_request){
		.operation = BACKEND_PUT,
		.key = slot->key,
		.body = body,
		.offset = offset,
		.length = slot->size,
		.rate = upload->rate,
		.deadline = upload->deadline
	};
	memcpy(sending->flight.request.sha256, slot->digest, SHA256_SIZE);
	if (flight_start(sender->flight, &sending->flight, error) == -1) {
		slot->state = SLOT_LOST;
		shelf_free(shelf);
		free(sending);
		return -1;
	}
	return 0;
}

static int
add_large(struct sender *sender, const struct sender_piece *piece,
    uint32_t *number, struct error *error)
{
	struct slot *slot;

	if (slot_new(sender, number, error) == -1 ||
	    remember(sender, piece->digest, piece->length, *number, 0,
	    error) == -1)
		return -1;
	slot = &sender->slots[*number];
	slot->size = piece->length;
	memcpy(slot->digest, piece->digest, SHA256_SIZE);
	return send_chunk(sender, *number, piece->lane,
	    piece->counts ? piece->length : 0, piece->source, piece->offset,
	    NULL, error);
}

static int
add_small(struct sender *sender, const struct sender_piece *piece,
    uint32_t *number, uint64_t *offset, struct error *error)
{
	struct lane *lane = &sender->lanes[piece->lane];

	if (lane->shelf != NULL &&
	    shelf_size(lane->shelf) + piece->length > sender->target &&
	    sender_flush(sender, piece->lane, error) == -1)
		return -1;
	if (lane->shelf == NULL) {
		if (slot_new(sender, &lane->slot, error) == -1 ||
		    (lane->shelf = shelf_new(error)) == NULL)
			return -1;
		lane->counted = 0;
	}
	*number = lane->slot;
	*offset = shelf_size(lane->shelf);
	if (shelf_add(lane->shelf, piece->source, piece->offset, piece->data,
	    (size_t)piece->length, error) == -1)
		return -1;
	if (piece->counts)
		lane->counted += piece->length;
	return remember(sender, piece->digest, piece->length, *number,
	    *offset, error);
}

static int
add_extent(struct sender_extents *extents, uint32_t slot, uint64_t offset,
    const struct sender_piece *piece, struct error *error)
{
	size_t capacity = extents->capacity > 0 ? extents->capacity * 2 : 8;
	struct manifest_extent *all;

	if (extents->count == extents->capacity) {
		all = realloc(extents->all, capacity * sizeof(*all));
		if (all == NULL)
			return out_of_memory(error);
		extents->all = all;
		extents->capacity = capacity;
	}
	all = &extents->all[extents->count++];
	*all = (struct manifest_extent){
		.chunk = slot, .offset = offset, .length = piece->length
	};
	memcpy(all->digest, piece->digest, SHA256_SIZE);
	return 0;
}

int
sender_add(struct sender *sender, const struct sender_piece *piece,
    struct sender_extents *extents, struct error *error)
{
	struct upload *upload = sender->upload;
	const struct piece *seen;
	struct writer_place place;
	uint64_t offset = 0;
	uint32_t slot;
	bool reused = true;
	int result = 0;

	assert(piece->length > 0);
	seen = pieces_find(sender->pieces, piece->digest, piece->length);
	if (seen != NULL) {
		slot = seen->chunk;
		offset = seen->offset;
	} else if (writer_find(upload->writer, sender->attempt, piece->digest,
	    piece->length, &place)) {
		result = take_place(sender, piece, &place, &slot, error);
		offset = place.offset;
	} else {
		reused = false;
		if (piece->lane == SENDER_CHECKPOINT)
			sender->fresh = true;
		if (piece->data == NULL)
			result = add_large(sender, piece, &slot, error);
		else
			result = add_small(sender, piece, &slot, &offset,
			    error);
	}
	if (result == -1)
		return -1;
	if (reused && piece->counts) {
		sender->reused += piece->length;
		upload->progress.reused += piece->length;
		upload->progress.done += piece->length;
	}
	return add_extent(extents, slot, offset, piece, error);
}

int
sender_flush(struct sender *sender, enum sender_lane which,
    struct error *error)
{
	struct lane *lane = &sender->lanes[which];
	struct shelf *shelf = lane->shelf;
	struct slot *slot = &sender->slots[lane->slot];
	struct writer_place place;
	uint32_t other;

	if (shelf == NULL)
		return 0;
	lane->shelf = NULL;
	slot->size = shelf_size(shelf);
	shelf_close(shelf, slot->digest);
	other = slot_of(sender, slot->digest, slot->size);
	/* An upload that was cut has gathered the same pieces before. */
	if ((other == UINT32_MAX || other == lane->slot) &&
	    writer_find(sender->upload->writer, sender->attempt, slot->digest,
	    slot->size, &place) && place.whole) {
		if ((slot->key = strdup(place.key)) == NULL) {
			shelf_free(shelf);
			return out_of_memory(error);
		}
		slot->state = SLOT_STORED;
		other = lane->slot;
	} else if (other == UINT32_MAX || other == lane->slot) {
		if (remember(sender, slot->digest, slot->size, lane->slot, 0,
		    error) == -1) {
			shelf_free(shelf);
			return -1;
		}
		return send_chunk(sender, lane->slot, which, lane->counted,
		    shelf_source(shelf), 0, shelf, error);
	}
	slot->same_as = other;
	shelf_free(shelf);
	sender->reused += lane->counted;
	sender->upload->progress.reused += lane->counted;
	sender->upload->progress.done += lane->counted;
	return 0;
}

int
sender_wait(struct sender *sender, struct error *error)
{
	return flight_wait(sender->flight, error);
}

bool
sender_is_fresh(const struct sender *sender)
{
	return sender->fresh;
}

bool
sender_lost(const struct sender *sender, const struct sender_extents *extents)
{
	const struct slot *slot;
	size_t i;

	for (i = 0; i < extents->count; i++) {
		slot = &sender->slots[extents->all[i].chunk];
		if (sender->slots[slot->same_as].state != SLOT_STORED)
			return true;
	}
	return false;
}

void
sender_totals(const struct sender *sender, uint64_t *stored, uint64_t *reused)
{
	*stored = sender->stored;
	*reused = sender->reused;
}

/* Number the chunks of these entries anew, in the order in which they are
 * first named; ${numbers} maps slots to them. */
static void
number_chunks(const struct sender *sender, struct manifest_entry *entries,
    size_t count, uint32_t *numbers, uint32_t *next)
{
	struct manifest_extent *extent;
	const struct slot *slot;
	uint32_t number;
	size_t i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < entries[i].extent_count; j++) {
			extent = &entries[i].extents[j];
			number = sender->slots[extent->chunk].same_as;
			slot = &sender->slots[number];
			if (numbers[number] == UINT32_MAX)
				numbers[number] = (*next)++;
			extent->chunk = numbers[number];
			extent->has_digest = extent->offset != 0 ||
			    extent->length != slot->size;
		}
	}
}

int
sender_chunks(const struct sender *sender, struct manifest *manifest,
    struct error *error)
{
	struct manifest_chunk *chunk;
	const struct slot *slot;
	uint32_t *numbers, next = 0;
	size_t i;

	if (sender->count == 0)
		return 0;
	numbers = malloc(sender->count * sizeof(*numbers));
	manifest->chunks = calloc(sender->count, sizeof(*manifest->chunks));
	if (numbers == NULL || manifest->chunks == NULL) {
		free(numbers);
		return out_of_memory(error);
	}
	for (i = 0; i < sender->count; i++)
		numbers[i] = UINT32_MAX;
	number_chunks(sender, manifest->entries, manifest->entry_count,
	    numbers, &next);
	number_chunks(sender, manifest->pointers, manifest->pointer_count,
	    numbers, &next);
	number_chunks(sender, manifest->companions, manifest->companion_count,
	    numbers, &next);
	manifest->chunk_count = next;
	for (i = 0; i < sender->count; i++) {
		if (numbers[i] == UINT32_MAX)
			continue;
		slot = &sender->slots[i];
		chunk = &manifest->chunks[numbers[i]];
		chunk->size = slot->size;
		memcpy(chunk->digest, slot->digest, SHA256_SIZE);
		if ((chunk->key = strdup(slot->key)) == NULL) {
			free(numbers);
			return out_of_memory(error);
		}
	}
	free(numbers);
	return 0;
}

void
sender_end(struct sender *sender, bool cancel)
{
	flight_end(sender->flight, cancel);
}

void
sender_free(struct sender *sender)
{
	size_t i;

	if (sender == NULL)
		return;
	flight_free(sender->flight);
	for (i = 0; i < SENDER_LANES; i++)
		shelf_free(sender->lanes[i].shelf);
	for (i = 0; i < sender->count; i++)
		free(sender->slots[i].key);
	free(sender->slots);
	pieces_free(sender->pieces);
	free(sender);
}
