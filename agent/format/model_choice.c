#include "format/model_choice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "format/key_tree.h"
#include "format/model.h"

/* How often a choice is looked into again. */
#define DESCENTS_MAXIMUM 4

enum class {
	CLASS_NOTHING,		/* holds no tensor */
	CLASS_TENSOR,
	CLASS_SURE,
	CLASS_AVERAGED,
	CLASS_LIKELY,
	CLASS_REST,
	CLASS_UNKNOWN
};

/*
 * Keys of the frameworks: Lightning, mmengine, timm, torch's tutorials,
 * DeepSpeed, Megatron, YOLO, Composer, BasicSR (their checkpoint writers).
 */
static const char *const sure[] = { "state_dict", "model_state_dict",
	"model_state", "module", "model" };
static const char *const averaged[] = { "ema", "ema_state_dict",
	"state_dict_ema", "model_ema", "ema_model", "params_ema",
	"model_state_dict_ema", "ema_model_state_dict", "net_ema", "swa" };
static const char *const likely[] = { "params", "net", "network",
	"generator", "weights" };

/* Parts of names of what is no model. */
static const char *const rest_parts[] = { "optim", "sched", "scaler",
	"rng_state", "random_state" };
static const char *const rest[] = { "rng", "callbacks", "loops",
	"message_hub", "random_states", "args", "train_args", "config",
	"hyper_parameters", "hparams", "datamodule", "dataloader",
	"train_dataloader", "train_state", "train_metrics", "train_results",
	"frozen_param_fragments", "param_shapes", "data_sampler",
	"dataset_state", "integrations", "metadata", "meta" };

#define COUNT(row) (sizeof(row) / sizeof((row)[0]))

static bool
is_one_of(const struct key *key, const char *const *row, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (key_tree_is(key, row[i]))
			return true;
	return false;
}

/* model0, model1, ...: the stages of Megatron's virtual pipeline. */
static bool
is_numbered(const struct key *key)
{
	if (key->name == NULL || key->length < 6 || key->length > 8 ||
	    memcmp(key->name, "model", 5) != 0)
		return false;
	for (size_t i = 5; i < key->length; i++)
		if (!isdigit((unsigned char)key->name[i]))
			return false;
	return true;
}

static bool
is_rest(const struct key *key)
{
	bool leaf = key->child == NULL;

	if (key->optimizer_tensors == key->tensors)
		return true;
	if (!leaf && is_one_of(key, rest, COUNT(rest)))
		return true;
	/* Tensors of layers may have any name. */
	if (key->name == NULL || (leaf &&
	    memchr(key->name, '.', key->length) != NULL))
		return false;
	for (size_t i = 0; i < COUNT(rest_parts); i++)
		if (memmem(key->name, key->length, rest_parts[i],
		    strlen(rest_parts[i])) != NULL)
			return true;
	return false;
}

static enum class
class_of(const struct key *key)
{
	if (key->tensors == 0)
		return CLASS_NOTHING;
	if (is_rest(key))
		return CLASS_REST;
	if (key->kind == KEY_TENSOR || key->kind == KEY_REFUSED)
		return CLASS_TENSOR;
	if (is_one_of(key, sure, COUNT(sure)) || is_numbered(key))
		return CLASS_SURE;
	if (is_one_of(key, averaged, COUNT(averaged)))
		return CLASS_AVERAGED;
	if (is_one_of(key, likely, COUNT(likely)))
		return CLASS_LIKELY;
	return CLASS_UNKNOWN;
}

/* What lies directly beneath a key. */
struct survey {
	size_t count[CLASS_UNKNOWN + 1];
	const struct key *first[CLASS_UNKNOWN + 1];
	size_t numbered;
	size_t solid;		/* tensors that are no scalars */
	bool dotted;		/* some tensor is named like one of a layer */
	bool weight;		/* or as that of a single layer */
};

static void
make_survey(const struct key *node, struct survey *survey)
{
	memset(survey, 0, sizeof(*survey));
	for (const struct key *at = node->child; at != NULL; at = at->next) {
		enum class class = class_of(at);

		if (survey->count[class]++ == 0)
			survey->first[class] = at;
		survey->numbered += class == CLASS_SURE && is_numbered(at);
		if (class == CLASS_TENSOR) {
			survey->solid += !at->scalar;
			survey->weight |= key_tree_is(at, "weight");
			survey->dotted |= at->name != NULL &&
			    memchr(at->name, '.', at->length) != NULL;
		}
	}
}

static int
refuse(const struct key *node, enum error_cause cause, const char *why,
    struct error *error)
{
	struct buffer text;
	char hint[500] = "";

	buffer_init(&text, sizeof(hint) - 1);
	for (const struct key *at = node->child; at != NULL; at = at->next) {
		struct error full;

		if (at->tensors == 0)
			continue;
		if (buffer_format(&text, &full, "%s", text.length > 0 ?
		    ", " : "") != 0 || key_tree_path(node, at, &text,
		    &full) != 0 || buffer_format(&text, &full,
		    " (%llu tensors)", (unsigned long long)at->tensors) != 0)
			break;
	}
	memcpy(hint, buffer_text(&text), text.length);
	buffer_free(&text);
	error_set(error, ERROR_USAGE, cause, NULL, "%s: %s", why, hint);
	return error_cure(error,
	    "choose one with --key; --list-keys shows them all");
}

static int
take(struct model_choice *choice, enum model_choice_kind kind,
    const struct key *base)
{
	choice->kind = kind;
	choice->base = base;
	return 0;
}

/* Without a sure name: 0 and a choice, 1 and *${into} to look into, or -1. */
static int
choose_unsure(const struct key *node, const struct survey *survey,
    struct model_choice *choice, const struct key **into, struct error *error)
{
	const size_t *count = survey->count;
	size_t others = count[CLASS_LIKELY] + count[CLASS_UNKNOWN];

	if (count[CLASS_TENSOR] > 0 && count[CLASS_AVERAGED] == 0 &&
	    (others == 0 || survey->dotted)) {
		if (count[CLASS_REST] == 0)
			return take(choice, MODEL_CHOICE_ALL, node);
		if (survey->dotted || survey->weight)
			return take(choice, MODEL_CHOICE_TENSORS, node);
	}
	/* Scalars beside something larger: a loss, a step. */
	if (survey->solid == 0 && others == 1) {
		*into = survey->first[count[CLASS_LIKELY] == 1 ?
		    CLASS_LIKELY : CLASS_UNKNOWN];
		return 1;
	}
	if (survey->solid == 0 && others == 0 && count[CLASS_AVERAGED] == 1) {
		*into = survey->first[CLASS_AVERAGED];
		return 1;
	}
	return refuse(node, CAUSE_OTHER,
	    "it is in doubt which part is the model", error);
}

static int
choose_in(const struct key *node, bool ema, struct model_choice *choice,
    const struct key **into, struct error *error)
{
	struct survey survey;

	make_survey(node, &survey);
	if (ema && survey.count[CLASS_AVERAGED] > 1)
		return refuse(node, CAUSE_OTHER,
		    "there are several averages of the weights", error);
	if (ema && survey.count[CLASS_AVERAGED] == 1) {
		*into = survey.first[CLASS_AVERAGED];
		return 1;
	}
	if (survey.numbered > 1 && survey.numbered == survey.count[CLASS_SURE])
		return take(choice, MODEL_CHOICE_NUMBERED, node);
	if (survey.count[CLASS_SURE] > 1)
		return refuse(node, CAUSE_OTHER,
		    "more than one key may be the model", error);
	if (survey.count[CLASS_SURE] == 1) {
		*into = survey.first[CLASS_SURE];
		return 1;
	}
	return choose_unsure(node, &survey, choice, into, error);
}

/* Whether what lies beneath is of several kinds, as at a checkpoint's top. */
static bool
is_like_a_top(const struct key *node)
{
	struct survey survey;

	make_survey(node, &survey);
	return (survey.count[CLASS_REST] > 0) + (survey.count[CLASS_SURE] > 0) +
	    (survey.count[CLASS_AVERAGED] > 0) > 1;
}

/* Whether to ask again what beneath ${node}, just chosen, is the model. */
static bool
goes_on(const struct key *node)
{
	if (node->kind != KEY_BRANCH)
		return false;
	if (node->optimizer_tensors > 0 || is_like_a_top(node))
		return true;
	/* Composer keeps the model in `state`. */
	return key_tree_is(node, "state") && node->child != NULL &&
	    node->child->next == NULL && key_tree_is(node->child, "model");
}

static int
choose_by_rules(const struct key_tree *tree, bool ema,
    struct model_choice *choice, struct error *error)
{
	const struct key *node = tree->root, *into = NULL;
	bool averaged_found = false;

	if (node->optimizer_tensors == node->tensors)
		return refuse(node, CAUSE_NOT_FOUND,
		    "it holds only the state of an optimizer", error);
	if (node->kind == KEY_MODULE && !ema)
		return take(choice, MODEL_CHOICE_ALL, node);
	for (int i = 0; i < DESCENTS_MAXIMUM; i++) {
		int result = choose_in(node, ema && !averaged_found, choice,
		    &into, error);

		if (result < 0)
			return -1;
		averaged_found = averaged_found || (result == 1 &&
		    class_of(into) == CLASS_AVERAGED);
		if (result == 0 || !goes_on(into)) {
			if (ema && !averaged_found)
				break;
			return result == 0 ? 0 :
			    take(choice, MODEL_CHOICE_ALL, into);
		}
		node = into;
	}
	if (ema)
		return refuse(tree->root, CAUSE_NOT_FOUND,
		    "there are no averaged weights", error);
	return refuse(tree->root, CAUSE_OTHER,
	    "it is in doubt which part is the model", error);
}

/* The child of ${node} whose name, with a dot behind it or at its end, begins
 * ${path}; *${rest_of} is what follows. */
static bool
begins(const struct key *child, const char *path, const char **rest_of)
{
	char digits[24];
	const char *name = child->name;
	size_t length = child->length, left = strlen(path);

	if (name == NULL) {
		length = (size_t)snprintf(digits, sizeof(digits), "%llu",
		    (unsigned long long)child->number);
		name = digits;
	}
	if (length > left || memcmp(name, path, length) != 0 ||
	    (path[length] != '.' && path[length] != '\0'))
		return false;
	*rest_of = path[length] == '.' ? path + length + 1 : path + length;
	return true;
}

/* The base and prefix that ${path} beneath ${node} means. */
static bool
resolve(const struct key *node, const char *path, struct model_choice *choice)
{
	const char *left;
	size_t length = strlen(path);

	if (length == 0) {
		take(choice, MODEL_CHOICE_ALL, node);
		return true;
	}
	for (const struct key *at = node->child; at != NULL; at = at->next)
		if (begins(at, path, &left) && (at->child != NULL ||
		    *left == '\0') && resolve(at, left, choice))
			return true;
	/* A part of names that have dots in them. */
	for (const struct key *at = node->child; at != NULL; at = at->next) {
		if (at->name != NULL && at->length > length &&
		    at->name[length] == '.' &&
		    memcmp(at->name, path, length) == 0) {
			take(choice, MODEL_CHOICE_PREFIX, node);
			choice->prefix = path;
			return true;
		}
	}
	return false;
}

static int
too_deep(struct error *error)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
	    "what is in it is nested over %d deep", KEY_TREE_DEPTH_MAXIMUM);
}

int
model_choice_make(const struct key_tree *tree,
    const struct model_options *options, struct model_choice *choice,
    struct error *error)
{
	const char *key = options->key;

	memset(choice, 0, sizeof(*choice));
	if (tree->root->tensors == 0 && tree->root->cut)
		return too_deep(error);
	if (tree->root->tensors == 0)
		return error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND, NULL,
		    "it holds no tensors");
	if (key == NULL) {
		if (choose_by_rules(tree, options->ema, choice, error) != 0)
			return -1;
	} else if (strcmp(key, ".") == 0 || key[0] == '\0') {
		take(choice, MODEL_CHOICE_ALL, tree->root);
	} else if (!resolve(tree->root, key, choice)) {
		error_set(error, ERROR_USAGE, CAUSE_NOT_FOUND, NULL,
		    "no tensors lie under the key %s", key);
		return error_cure(error, "--list-keys shows the keys");
	}
	return choice->base->cut ? too_deep(error) : 0;
}

bool
model_choice_holds(const struct model_choice *choice, const struct key *child)
{
	size_t length;

	switch (choice->kind) {
	case MODEL_CHOICE_ALL:
		return true;
	case MODEL_CHOICE_TENSORS:
		return class_of(child) != CLASS_REST;
	case MODEL_CHOICE_NUMBERED:
		return class_of(child) == CLASS_SURE;
	case MODEL_CHOICE_PREFIX:
		length = strlen(choice->prefix);
		return child->name != NULL && child->length > length &&
		    child->name[length] == '.' &&
		    memcmp(child->name, choice->prefix, length) == 0;
	}
	return false;
}
