#include "format/model_torch.h"

#include <stdlib.h>

#include "base/error.h"
#include "format/key_tree.h"
#include "format/model_take.h"
#include "format/torch_file.h"
#include "format/torch_tree.h"
#include "format/torch_view.h"

struct opened {
	struct torch_file file;
	struct key_tree tree;
	size_t index;
};

static int
open_tree(const struct source *source, struct opened *opened,
    struct error *error)
{
	if (torch_file_open(source, &opened->file, error) != 0 ||
	    key_tree_init(&opened->tree, error) != 0)
		return -1;
	return torch_tree_make(torch_file_object(&opened->file),
	    &opened->tree, error);
}

static int
make(void *context, const struct key *key, struct tensor *tensor,
    const char **why, struct error *error)
{
	struct opened *opened = context;
	struct torch_view view;
	uint64_t place = 0, length = 0;
	int result;

	torch_view_read(key->origin, &view);
	if (view.bytes > 0 && torch_file_storage(&opened->file, &view.storage,
	    &place, &length, error) != 0)
		return -1;
	result = torch_view_make(&view, place, length, tensor, why, error);
	for (size_t i = 0; result == 0 && i < tensor->piece_count; i++)
		tensor->pieces[i].file = opened->index;
	return result;
}

static void
close_tree(struct opened *opened)
{
	key_tree_free(&opened->tree);
	torch_file_close(&opened->file);
}

int
model_torch_take(const struct source *source, size_t file,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	struct opened opened = { .index = file };
	struct model_maker maker = { make, &opened };
	int result = open_tree(source, &opened, error);

	if (result == 0)
		result = model_take(&opened.tree, &maker, options, model,
		    error);
	close_tree(&opened);
	return result;
}

int
model_torch_print(const struct source *source, struct buffer *text,
    struct error *error)
{
	struct opened opened = { .index = 0 };
	int result = open_tree(source, &opened, error);

	if (result == 0)
		result = key_tree_print(&opened.tree, text, error);
	close_tree(&opened);
	return result;
}
