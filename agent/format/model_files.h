#ifndef FORMAT_MODEL_FILES_H
#define FORMAT_MODEL_FILES_H

#include "format/model.h"

struct error;

/*
 * What the files of a checkpoint are: by their names (reference layouts of
 * the frameworks), and by their first bytes.
 */
enum model_content {
	MODEL_CONTENT_OTHER,
	MODEL_CONTENT_TORCH,		/* legacy, or a zip that may be one */
	MODEL_CONTENT_SAFETENSORS,
	MODEL_CONTENT_HDF5,
	MODEL_CONTENT_GGUF,
	MODEL_CONTENT_TAR,
	MODEL_CONTENT_GZIP
};

/**
 * model_files_content(source, content, error):
 * What the first bytes of ${source} say.  Return 0, or -1 when it could not
 * be read.
 */
int model_files_content(const struct source *source,
    enum model_content *content, struct error *error);

/* Which files to read, and how. */
struct model_plan {
	enum model_layout layout;
	bool tar;		/* the one file is a tar */
	size_t *files;		/* indexes; MODEL_DCP: .metadata alone */
	size_t count;
};

/**
 * model_files_plan(files, count, plan, error):
 * Find the layout of ${files} (free ${plan} with model_files_plan_free, also
 * after an error).  Return 0; -1: CAUSE_UNSUPPORTED with what to do instead for
 * layouts that mix everything; CAUSE_NOT_FOUND when there are no weights.
 */
int model_files_plan(const struct model_file *files, size_t count,
    struct model_plan *plan, struct error *error);

/**
 * model_files_plan_free(plan): free what it holds, not itself.
 */
void model_files_plan_free(struct model_plan *plan);

#endif
