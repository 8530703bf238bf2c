#include "move/description.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "format/checkpoint.h"
#include "format/format.h"
#include "store/manifest.h"
#include "move/upload.h"

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

int
description_entry(struct manifest_entry *to,
    const struct checkpoint_entry *from, const struct sender_extents *extents,
    struct error *error)
{
	size_t size;

	memset(to, 0, sizeof(*to));
	to->kind = from->kind == ENTRY_FOLDER ? MANIFEST_FOLDER :
	    from->kind == ENTRY_LINK ? MANIFEST_LINK : MANIFEST_FILE;
	to->mode = from->mode & 07777;
	to->modified = from->identity.modified;
	if ((to->path = strdup(from->path)) == NULL)
		return out_of_memory(error);
	if (from->kind == ENTRY_LINK &&
	    (to->target = strdup(from->target)) == NULL)
		return out_of_memory(error);
	if (from->kind != ENTRY_FILE)
		return 0;
	to->size = from->identity.size;
	if (extents == NULL || extents->count == 0)
		return 0;
	size = extents->count * sizeof(*to->extents);
	if ((to->extents = malloc(size)) == NULL)
		return out_of_memory(error);
	memcpy(to->extents, extents->all, size);
	to->extent_count = extents->count;
	return 0;
}

static int
add_entries(struct manifest *manifest, const struct checkpoint *checkpoint,
    const struct sender_extents *extents, struct error *error)
{
	const struct checkpoint_entry *from;
	struct manifest_entry *to;
	size_t i;

	if (checkpoint->entry_count == 0)
		return 0;
	manifest->entries = calloc(checkpoint->entry_count,
	    sizeof(*manifest->entries));
	if (manifest->entries == NULL)
		return out_of_memory(error);
	manifest->entry_count = checkpoint->entry_count;
	for (i = 0; i < checkpoint->entry_count; i++) {
		from = &checkpoint->entries[i];
		to = &manifest->entries[i];
		if (description_entry(to, from, &extents[i], error) == -1)
			return -1;
		if (from->kind == ENTRY_FILE && from->same_as != i) {
			to->kind = MANIFEST_HARD_LINK;
			to->size = 0;
			to->target =
			    strdup(checkpoint->entries[from->same_as].path);
			if (to->target == NULL)
				return out_of_memory(error);
		}
		manifest->size += to->size;
	}
	return 0;
}

struct manifest *
description_new(const struct upload *upload,
    const struct sender_extents *extents, uint64_t target,
    struct error *error)
{
	const struct checkpoint *checkpoint = upload->checkpoint;
	struct manifest *manifest;

	if ((manifest = manifest_new()) == NULL) {
		out_of_memory(error);
		return NULL;
	}
	manifest->role = checkpoint->role;
	manifest->has_step = checkpoint->has_step;
	manifest->step = checkpoint->step;
	manifest->proven = checkpoint->proven;
	manifest->completed = checkpoint->completed;
	manifest->save_attempt = upload->save_attempt;
	manifest->target = target;
	manifest->name = strdup(checkpoint->name);
	manifest->series = strdup(checkpoint->series);
	manifest->layout = strdup(checkpoint->layout);
	manifest->reason = strdup(checkpoint->reason);
	if (manifest->name == NULL || manifest->series == NULL ||
	    manifest->layout == NULL || manifest->reason == NULL) {
		out_of_memory(error);
		goto failed;
	}
	if (upload->environment != NULL)
		manifest->environment = json_incref(upload->environment);
	if (add_entries(manifest, checkpoint, extents, error) == -1)
		goto failed;
	return manifest;

failed:
	manifest_free(manifest);
	return NULL;
}

int
description_records(struct manifest *manifest, size_t entry,
    struct format_report *report, struct error *error)
{
	size_t i, count = manifest->record_count + report->record_count;
	struct manifest_record *records;

	if (report->record_count == 0)
		return 0;
	if (count > DESCRIPTION_RECORDS_MAXIMUM) {
		log_line(LOG_DEBUG, "records_left_out",
		    "%s: too many records to name them in the manifest",
		    manifest->entries[entry].path);
		return 0;
	}
	records = realloc(manifest->records, count * sizeof(*records));
	if (records == NULL)
		return out_of_memory(error);
	manifest->records = records;
	for (i = 0; i < report->record_count; i++) {
		records[manifest->record_count++] = (struct manifest_record){
			.entry = (uint32_t)entry,
			.name = report->records[i].name,
			.offset = report->records[i].offset,
			.length = report->records[i].length
		};
		report->records[i].name = NULL;
	}
	return 0;
}
