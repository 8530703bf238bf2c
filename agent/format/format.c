#include "format/format.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/path.h"
#include "format/hdf5.h"
#include "format/hole.h"
#include "format/json_text.h"
#include "format/legacy.h"
#include "format/report.h"
#include "format/safetensors.h"
#include "format/shard.h"
#include "format/tar.h"
#include "format/torch.h"

#define START_SIZE 512
#define INDEX_MAXIMUM ((size_t)32 << 20)

static const char *const words[] = {
	[FORMAT_UNKNOWN] = "unknown",
	[FORMAT_SAFETENSORS] = "safetensors",
	[FORMAT_TORCH] = "torch",
	[FORMAT_TORCH_LEGACY] = "torch-legacy",
	[FORMAT_ZIP] = "zip",
	[FORMAT_HDF5] = "hdf5",
	[FORMAT_TAR] = "tar",
	[FORMAT_JSON] = "json",
};

/*
 * What a name says about its file.  `strict`: whatever has that name and not
 * that format is torn.  The others are used for more than one format, or for
 * raw bytes.
 */
static const struct claim {
	const char *ending;
	enum format_kind kind;
	bool strict;
} claims[] = {
	{ ".safetensors", FORMAT_SAFETENSORS, true },
	{ ".json", FORMAT_JSON, true },
	{ ".pt", FORMAT_TORCH, true },
	{ ".pth", FORMAT_TORCH, true },
	{ ".ckpt", FORMAT_TORCH, false },	/* TensorFlow 1 */
	{ ".bin", FORMAT_TORCH, false },	/* raw */
	{ ".pth.tar", FORMAT_TORCH, false },
	{ ".tar", FORMAT_TAR, false },
	{ ".nemo", FORMAT_TAR, true },
	{ ".h5", FORMAT_HDF5, true },
	{ ".hdf5", FORMAT_HDF5, true },
	{ ".keras", FORMAT_ZIP, true },
	{ ".npz", FORMAT_ZIP, true },
	{ ".pkl", FORMAT_UNKNOWN, false },
};

/*
 * A shard of torch.distributed.checkpoint holds one zip behind the other:
 * nothing in it tells where it should end, `.metadata` beside it does.
 */
#define SHARD_ENDING ".distcp"

/* The look into one file. */
struct look {
	const struct source *source;
	const struct claim *claim;	/* or NULL */
	bool shard;
	uint8_t start[START_SIZE];
	size_t length;			/* of `start` */
	struct format_report *report;
};

static bool
ends_in(const char *name, const char *ending)
{
	size_t length = strlen(name), tail = strlen(ending);

	return length >= tail &&
	    strcasecmp(name + length - tail, ending) == 0;
}

static const struct claim *
claim_of(const char *name)
{
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
		if (ends_in(name, claims[i].ending))
			return &claims[i];
	return NULL;
}

static bool
claims_kind(const struct look *look, enum format_kind kind)
{
	return look->claim != NULL && look->claim->kind == kind;
}

static bool
starts_with(const struct look *look, const char *bytes, size_t length)
{
	return look->length >= length &&
	    memcmp(look->start, bytes, length) == 0;
}

/* A pickle that is no torch.save: complete ones end in STOP. */
static int
inspect_pickle(const struct look *look, struct error *error)
{
	uint8_t last;

	if (source_read(look->source, look->source->size - 1, &last, 1,
	    error) != 0)
		return -1;
	if (last != '.' && claims_kind(look, FORMAT_TORCH) &&
	    look->claim->strict)
		return report_say(look->report, FORMAT_TORN,
		    "it begins like a pickle and does not end like one");
	return report_say(look->report, FORMAT_UNPROVEN,
	    "it is a pickle, which does not tell whether all is there");
}

/*
 * A name that promises nothing: safetensors are taken when they are whole, but
 * their start is no proof that it should be one.
 */
static int
inspect_nameless(const struct look *look, struct error *error)
{
	struct format_report *report = look->report;
	int claimed = safetensors_claimed(look->source, error);

	if (claimed < 0 || (claimed > 0 &&
	    safetensors_inspect(look->source, report, error) != 0))
		return -1;
	if (claimed > 0 && report->verdict != FORMAT_TORN)
		return 0;
	report->kind = FORMAT_UNKNOWN;
	return report_say(report, FORMAT_UNPROVEN,
	    "it has no structure that is known");
}

/* No content was recognised: what the name says decides. */
static int
inspect_by_name(const struct look *look, struct error *error)
{
	if (look->claim == NULL || !look->claim->strict)
		return inspect_nameless(look, error);
	look->report->kind = look->claim->kind;
	if (look->claim->kind == FORMAT_HDF5)
		return hdf5_inspect(look->source, look->report, error);
	if (look->claim->kind == FORMAT_TAR)
		return report_say(look->report, FORMAT_TORN, "it is no tar");
	return torch_inspect(look->source, look->claim->kind == FORMAT_TORCH,
	    look->report, error);
}

static int
inspect_content(const struct look *look, struct error *error)
{
	if (claims_kind(look, FORMAT_SAFETENSORS))
		return safetensors_inspect(look->source, look->report, error);
	if (claims_kind(look, FORMAT_JSON))
		return json_text_inspect(look->source, look->report, error);
	if (look->shard && starts_with(look, "PK\3\4", 4))
		return shard_inspect(look->source, look->report, error);
	/* The end of an empty zip may be all of it: PK\5\6. */
	if (!look->shard && (starts_with(look, "PK\3\4", 4) ||
	    starts_with(look, "PK\5\6", 4)))
		return torch_inspect(look->source,
		    claims_kind(look, FORMAT_TORCH), look->report, error);
	if (legacy_claimed(look->start, look->length))
		return legacy_inspect(look->source, look->report, error);
	if (starts_with(look, "\x89HDF\r\n\x1a\n", 8))
		return hdf5_inspect(look->source, look->report, error);
	if (tar_claimed(look->start, look->length))
		return tar_inspect(look->source, look->report, error);
	if (starts_with(look, "\x1f\x8b", 2) &&
	    (look->claim == NULL || look->claim->kind == FORMAT_TAR)) {
		look->report->kind = claims_kind(look, FORMAT_TAR) ?
		    FORMAT_TAR : FORMAT_UNKNOWN;
		return report_say(look->report, FORMAT_UNPROVEN,
		    "it is compressed by gzip and was not looked into");
	}
	if (look->length >= 2 && look->start[0] == 0x80 &&
	    look->start[1] >= 2 && look->start[1] <= 5)
		return inspect_pickle(look, error);
	return inspect_by_name(look, error);
}

int
format_inspect(const struct source *source, const char *name,
    struct format_report *report, struct error *error)
{
	struct look look = {
		.source = source,
		.claim = claim_of(name),
		.shard = ends_in(name, SHARD_ENDING),
		.report = report,
	};
	int result;

	memset(report, 0, sizeof(*report));
	report->verdict = FORMAT_UNPROVEN;
	if (source->size == 0) {
		report->kind = look.claim != NULL ? look.claim->kind :
		    FORMAT_UNKNOWN;
		return report_say(report, look.claim != NULL ? FORMAT_TORN :
		    FORMAT_UNPROVEN, "it is empty");
	}
	look.length = source->size < START_SIZE ? (size_t)source->size :
	    START_SIZE;
	if (source_read(source, 0, look.start, look.length, error) != 0)
		return -1;
	result = inspect_content(&look, error);
	if (result == 0 && report->verdict == FORMAT_WHOLE)
		hole_judge(source, report);
	if (result != 0)
		format_report_free(report);
	return result;
}

const char *
format_kind_text(enum format_kind kind)
{
	return words[kind];
}

/* The text of an index, whole. */
static json_t *
read_index(const struct source *source, struct error *error)
{
	json_t *index = NULL;
	char *text;

	if (source->size > INDEX_MAXIMUM) {
		error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, source->name,
		    "an index of more than %zu bytes", INDEX_MAXIMUM);
		return NULL;
	}
	text = malloc((size_t)source->size + 1);
	if (text == NULL)
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, source->name,
		    "out of memory for an index");
	else if (source_read(source, 0, text, (size_t)source->size,
	    error) == 0)
		index = json_read(text, (size_t)source->size, source->name,
		    error);
	free(text);
	return index;
}

int
format_index_shards(const struct source *source,
    int (*visit)(void *context, const char *name, struct error *error),
    void *context, struct error *error)
{
	json_t *index = read_index(source, error);
	json_t *map = json_object_get(index, "weight_map");
	json_t *seen = json_object(), *shard;
	const char *tensor;
	int result = -1;

	if (index == NULL)
		goto done;
	if (!json_is_object(map)) {
		error_set(error, ERROR_DAMAGED, CAUSE_OTHER, source->name,
		    "it has no weight_map: it is not an index of shards");
		goto done;
	}
	json_object_foreach(map, tensor, shard) {
		const char *name = json_string_value(shard);

		if (name == NULL || !path_is_harmless(name)) {
			error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    source->name, "%s lies in no proper file", tensor);
			goto done;
		}
		if (json_object_get(seen, name) != NULL)
			continue;
		if (json_object_set_new(seen, name, json_true()) != 0) {
			error_set(error, ERROR_FAILED, CAUSE_MEMORY,
			    source->name, "out of memory for an index");
			goto done;
		}
		if (visit(context, name, error) != 0)
			goto done;
	}
	result = 0;

done:
	json_decref(seen);
	json_decref(index);
	return result;
}
