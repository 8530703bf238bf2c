#include "format/torch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/pickle.h"
#include "format/report.h"
#include "format/storage.h"
#include "format/window.h"
#include "format/zip.h"

/* What follows the prefix (the first folder) of a name; NULL without one. */
static const char *
behind_prefix(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash == NULL || slash == name ? NULL : slash + 1;
}

static const struct zip_member *
find_pickle(const struct zip *zip)
{
	for (size_t i = 0; i < zip->count; i++) {
		const char *rest = behind_prefix(zip->members[i].name);

		if (rest != NULL && strcmp(rest, "data.pkl") == 0)
			return &zip->members[i];
	}
	return NULL;
}

/*
 * Without data.pkl: whether this is what a torch.save that failed leaves, the
 * members that its writer adds at the end (and before the first storage).
 */
static bool
is_failed_save(const struct zip *zip)
{
	static const char *const always[] = { "version", ".data/version",
		"byteorder", ".format_version", ".storage_alignment",
		".data/serialization_id" };
	bool version = false;

	for (size_t i = 0; i < zip->count; i++) {
		const char *rest = behind_prefix(zip->members[i].name);
		bool known = false;

		for (size_t j = 0; rest != NULL && !known &&
		    j < sizeof(always) / sizeof(always[0]); j++)
			known = strcmp(rest, always[j]) == 0;
		if (!known)
			return false;
		version = version || strstr(rest, "version") != NULL;
	}
	return version;
}

/* torch.package writes zips of its own under the same names. */
static bool
is_package(const struct zip *zip)
{
	for (size_t i = 0; i < zip->count; i++) {
		const char *rest = behind_prefix(zip->members[i].name);

		if (rest != NULL && strcmp(rest, ".data/extern_modules") == 0)
			return true;
	}
	return false;
}

static int
by_name(const void *a, const void *b)
{
	const struct zip_member *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* The members, sorted by name; the caller frees the row. */
static const struct zip_member **
sort_members(const struct zip *zip, struct error *error)
{
	const struct zip_member **sorted =
	    malloc((zip->count + 1) * sizeof(*sorted));

	if (sorted == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the members of a zip");
		return NULL;
	}
	for (size_t i = 0; i < zip->count; i++)
		sorted[i] = &zip->members[i];
	qsort(sorted, zip->count, sizeof(*sorted), by_name);
	return sorted;
}

/* Whether ${storage} is there, whole: 0 or -1. */
static int
check_storage(const struct storage *storage, const char *prefix,
    int prefix_length, const struct zip_member **sorted, size_t count,
    struct error *error)
{
	char name[REPORT_NAME_MAXIMUM + 1];
	struct zip_member wanted = { .name = name };
	const struct zip_member *key = &wanted, **found;
	uint64_t size;
	int length;

	length = snprintf(name, sizeof(name), "%.*sdata/%s", prefix_length,
	    prefix, storage->key);
	if (length < 0 || (size_t)length >= sizeof(name))
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "a storage's key is longer than %d bytes",
		    REPORT_NAME_MAXIMUM);
	found = bsearch(&key, sorted, count, sizeof(*sorted), by_name);
	if (found == NULL)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "data.pkl names %s, which is not there", name);
	if (storage_size(storage->elements, storage->width, &size) != 0 ||
	    (*found)->length < size)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "%s has %" PRIu64 " bytes, data.pkl says %" PRIu64
		    " elements of %u", name, (*found)->length,
		    storage->elements, storage->width);
	return 0;
}

static int
check_storages(const struct pickle *pickle, const struct zip *zip,
    const struct zip_member *member, struct error *error)
{
	const struct zip_member **sorted = sort_members(zip, error);
	int prefix = (int)(behind_prefix(member->name) - member->name);
	int result = sorted == NULL ? -1 : 0;

	for (size_t i = 0; i < pickle_persistent_count(pickle) &&
	    result == 0; i++) {
		struct storage storage;

		if (storage_read(pickle_persistent(pickle, i), &storage) == 0)
			result = check_storage(&storage, member->name, prefix,
			    sorted, zip->count, error);
	}
	free(sorted);
	return result;
}

/* The storages that data.pkl names against those that are there. */
static int
check_pickle(const struct source *source, const struct zip *zip,
    const struct zip_member *member, bool *failed, struct error *error)
{
	struct window *window;
	struct pickle *pickle;
	int result = -1;

	if (!member->stored)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "data.pkl is compressed");
	window = malloc(sizeof(*window));
	if (window == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    source->name, "out of memory");
	window_init(window, source, member->offset,
	    member->offset + member->length);
	pickle = pickle_read(window, error);
	*failed = window->failed;
	free(window);
	if (pickle != NULL)
		result = check_storages(pickle, zip, member, error);
	pickle_free(pickle);
	return result;
}

static int
judge_torch(const struct source *source, const struct zip *zip,
    const struct zip_member *pickle, struct format_report *report,
    struct error *error)
{
	bool failed = false;

	if (check_pickle(source, zip, pickle, &failed, error) == 0)
		return report_say(report, FORMAT_WHOLE,
		    "all members of the zip (%zu) and all storages that "
		    "data.pkl names are there", zip->count);
	if (error->cause == CAUSE_UNSUPPORTED || error->cause == CAUSE_LIMIT)
		return report_say(report, FORMAT_WHOLE,
		    "all members of the zip (%zu) are there; its storages "
		    "were not checked: %s", zip->count, error->message);
	return report_judge(report, error, failed);
}

static int
add_records(const struct zip *zip, struct format_report *report,
    struct error *error)
{
	for (size_t i = 0; i < zip->count; i++) {
		const struct zip_member *member = &zip->members[i];

		if (member->stored && member->length > 0 &&
		    report_add(report, member->name, strlen(member->name),
		    member->offset, member->length, error) != 0)
			return -1;
	}
	report_sort(report);
	return 0;
}

static int
judge(const struct source *source, const struct zip *zip, bool claimed,
    struct format_report *report, struct error *error)
{
	const struct zip_member *pickle = find_pickle(zip);
	const char *twin;

	report->kind = pickle != NULL ? FORMAT_TORCH : FORMAT_ZIP;
	if (add_records(zip, report, error) != 0)
		return report_judge(report, error, false);
	if (report_twin(report, &twin, error) != 0)
		return -1;
	if (twin != NULL)
		return report_say(report, FORMAT_UNPROVEN,
		    "two members of the zip are named %s", twin);
	if (pickle != NULL)
		return judge_torch(source, zip, pickle, report, error);
	if (is_failed_save(zip) || (claimed && !is_package(zip))) {
		report->kind = FORMAT_TORCH;
		return report_say(report, FORMAT_TORN,
		    "it is a zip without data.pkl, as a save that failed "
		    "leaves it");
	}
	return report_say(report, FORMAT_WHOLE,
	    "all members of the zip (%zu) are there", zip->count);
}

int
torch_inspect(const struct source *source, bool claimed,
    struct format_report *report, struct error *error)
{
	struct zip zip;
	int result;

	report->kind = claimed ? FORMAT_TORCH : FORMAT_ZIP;
	if (zip_list(source, &zip, error) == 0)
		result = judge(source, &zip, claimed, report, error);
	else
		result = report_judge(report, error, zip.failed);
	zip_free(&zip);
	return result;
}
