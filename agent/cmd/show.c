#include "cmd/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/unit.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "store/backend.h"
#include "store/remote.h"
#include "store/truth.h"

static const char *const kinds[] = {
	[MANIFEST_FILE] = "file", [MANIFEST_FOLDER] = "folder",
	[MANIFEST_LINK] = "link", [MANIFEST_HARD_LINK] = "hard link",
};

static json_t *
entry_object(const struct manifest_entry *entry)
{
	json_t *object = json_pack("{s:s, s:i}", "kind", kinds[entry->kind],
	    "mode", (int)entry->mode);

	if (object == NULL ||
	    json_set_name(object, "path", entry->path) != 0 ||
	    json_set_time(object, "modified", entry->modified) != 0 ||
	    (entry->kind == MANIFEST_FILE &&
	    (json_set_u64(object, "size_bytes", entry->size) != 0 ||
	    json_set_u64(object, "extents", entry->extent_count) != 0)) ||
	    (entry->target != NULL &&
	    json_set_name(object, "target", entry->target) != 0)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int
set_entries(json_t *object, const char *field,
    const struct manifest_entry *entries, size_t count)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < count; i++)
		if (json_array_append_new(array,
		    entry_object(&entries[i])) != 0) {
			json_decref(array);
			return -1;
		}
	return json_object_set_new(object, field, array);
}

static uint64_t
chunk_bytes(const struct manifest *manifest)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < manifest->chunk_count; i++)
		bytes += manifest->chunks[i].size;
	return bytes;
}

static json_t *
show_object(const struct manifest *manifest, int resume)
{
	json_t *object = output_checkpoint(manifest, resume);

	if (object == NULL)
		return NULL;
	if (json_object_set_new(object, "reason",
	    json_string(manifest->reason)) != 0 ||
	    json_set_u64(object, "chunks", manifest->chunk_count) != 0 ||
	    json_set_u64(object, "chunk_bytes", chunk_bytes(manifest)) != 0 ||
	    json_set_u64(object, "records", manifest->record_count) != 0 ||
	    set_entries(object, "files", manifest->entries,
	    manifest->entry_count) != 0 ||
	    set_entries(object, "pointers", manifest->pointers,
	    manifest->pointer_count) != 0 ||
	    set_entries(object, "companions", manifest->companions,
	    manifest->companion_count) != 0 ||
	    json_object_set_new(object, "manifest",
	    json_string(manifest->key)) != 0 ||
	    json_object_set(object, "environment",
	    manifest->environment == NULL ? json_null() :
	    manifest->environment) != 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static void
print_entries(const char *title, const struct manifest_entry *entries,
    size_t count)
{
	const struct manifest_entry *entry;
	char size[UNIT_TEXT_SIZE];
	size_t i;

	if (count == 0)
		return;
	printf("%s:\n", title);
	for (i = 0; i < count; i++) {
		entry = &entries[i];
		printf("  %10s  ", entry->kind == MANIFEST_FILE ?
		    unit_size_text(entry->size, size) : kinds[entry->kind]);
		output_name(entry->path);
		if (entry->target != NULL) {
			printf(" -> ");
			output_name(entry->target);
		}
		putchar('\n');
	}
}

static void
print_environment(const struct manifest *manifest)
{
	const char *key, *text;
	json_t *value;
	char *dump;

	if (manifest->environment == NULL)
		return;
	printf("environment:\n");
	json_object_foreach(manifest->environment, key, value) {
		printf("  ");
		output_name(key);
		printf(": ");
		text = json_string_value(value);
		dump = text == NULL ? json_dumps(value, JSON_ENCODE_ANY) :
		    NULL;
		if (text == NULL)
			text = dump == NULL ? "" : dump;
		/* Several lines (pip freeze) stay lines. */
		for (; *text != '\0'; text++) {
			if (*text == '\n')
				printf("%s", text[1] == '\0' ? "" :
				    "\n    ");
			else
				putchar((unsigned char)*text < ' ' ? '?' :
				    *text);
		}
		putchar('\n');
		free(dump);
	}
}

static void
print_checkpoint(const struct manifest *manifest, bool resume)
{
	char id[MANIFEST_ID_SIZE], size[UNIT_TEXT_SIZE], when[OUTPUT_TIME_SIZE];
	char machine[OUTPUT_MACHINE_SIZE];

	output_name(manifest->name);
	printf(" (%s)%s\n", manifest_id(manifest, id),
	    resume ? ", the resume point" : "");
	printf("role:       %s\nseries:     ", role_text(manifest->role));
	output_name(manifest->series);
	printf("\nlayout:     %s, %s: ", manifest->layout,
	    manifest->proven ? "proven" : "unproven");
	output_name(manifest->reason);
	if (manifest->has_step)
		printf("\nstep:       %" PRIu64, manifest->step);
	printf("\nsize:       %s", unit_size_text(manifest->size, size));
	printf(" in %zu chunks, ", manifest->chunk_count);
	printf("%s of them new\n", unit_size_text(manifest->new_size, size));
	printf("complete:   %s\n", output_time(manifest->completed, when));
	printf("committed:  %s\n", output_time(manifest->committed, when));
	printf("machine:    %s\n", output_machine(manifest, machine));
	printf("manifest:   %s\n", manifest->key);
	print_entries("files", manifest->entries, manifest->entry_count);
	print_entries("pointers", manifest->pointers,
	    manifest->pointer_count);
	print_entries("companions", manifest->companions,
	    manifest->companion_count);
	print_environment(manifest);
}

int
command_show(const struct options *options)
{
	const struct manifest *manifest = NULL;
	struct error error = ERROR_INIT;
	struct backend *backend;
	struct truth *truth = NULL;
	bool resume;
	int status;

	if (options->tensors)
		return command_tensors(options);
	backend = remote_open(options->settings.url,
	    &options->settings.remote, false, &error);
	if (backend != NULL && remote_check(backend, &error) == 0)
		truth = truth_read_any(backend, 0, &error);
	if (truth != NULL && options->checkpoint != NULL)
		manifest = truth_find(truth, options->checkpoint, &error);
	else if (truth != NULL)
		manifest = truth_resume(truth, &error);
	if (manifest == NULL) {
		status = output_failure(options, &error);
	} else {
		resume = !truth->resume_lost && truth->resume != SIZE_MAX &&
		    manifest == truth->valid[truth->resume];
		if (options->json) {
			status = output_json(show_object(manifest, resume));
		} else {
			print_checkpoint(manifest, resume);
			status = output_finish(ERROR_NONE);
		}
	}
	truth_free(truth);
	backend_free(backend);
	return status;
}
