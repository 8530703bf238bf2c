#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "format/key_tree.h"
#include "format/model.h"
#include "format/model_choice.h"
#include "kit/kit.h"

/*
 * A tree as text: "a" is a tensor, "a~" one without dimensions, "a{...}" a
 * branch, "a!{...}" an optimizer's state, "a#{...}" a module; blanks between.
 */
static const char *
plant(struct key_tree *tree, struct key *parent, const char *at)
{
	struct error error = ERROR_INIT;

	while (*at != '\0' && *at != '}') {
		size_t length = strcspn(at, " ~!#{}");
		struct key *key = key_tree_add(tree, parent, KEY_TENSOR,
		    &error);

		assert_non_null(key);
		key->name = at;
		key->length = length;
		at += length;
		key->scalar = *at == '~';
		key->optimizer = *at == '!';
		if (*at == '!' || *at == '{' || *at == '#') {
			key->kind = *at == '#' ? KEY_MODULE : KEY_BRANCH;
			at = plant(tree, key, at + (*at == '{' ? 1 : 2)) + 1;
		} else {
			at += *at == '~';
			assert_ok(key_tree_count(tree, key, 8, &error),
			    error);
		}
		at += strspn(at, " ");
	}
	return at;
}

/* What is chosen: the base's path, and which of its children. */
static char *
describe(const struct key_tree *tree, const struct model_choice *choice)
{
	struct buffer text;
	struct error error;

	buffer_init(&text, 4096);
	buffer_append(&text, "", 0, &error);
	key_tree_path(tree->root, choice->base, &text, &error);
	buffer_append(&text, ":", 1, &error);
	for (const struct key *at = choice->base->child; at != NULL;
	    at = at->next)
		if (model_choice_holds(choice, at))
			buffer_format(&text, &error, " %.*s", (int)at->length,
			    at->name);
	return text.data;
}

static const struct {
	const char *tree;
	const char *ema;	/* "ema": --ema */
	const char *wanted;	/* a description; or "! message" */
} cases[] = {
	/* Known keys. */
	{ "state_dict{a b} optimizer_states!{s}", "", "state_dict: a b" },
	{ "model{a} optimizer{x}", "", "model: a" },
	{ "model_state_dict{a} optimizer_state_dict{x} loss~", "",
	    "model_state_dict: a" },
	{ "module{a} frozen_param_fragments{f}", "", "module: a" },
	{ "model#{a} optimizer{x}", "", "model: a" },
	{ "model{a} criterion{c} replay{r}", "", "model: a" },
	{ "model{a} module{b}", "", "! more than one key may be the model: "
	    "model (1 tensors), module (1 tensors)" },
	{ "model0{a} model1{b} optimizer{x}", "", ": model0 model1" },
	{ "model0{a} optimizer{x}", "", "model0: a" },
	{ "model0{a} model{b}", "", "! more than one key" },
	{ "modelx{a} model1y{b}", "", "! it is in doubt" },
	/* Averages. */
	{ "model{a} ema{b}", "", "model: a" },
	{ "model{a} ema{b}", "ema", "ema: b" },
	{ "ema{b} optimizer{x}", "", "ema: b" },
	{ "state_dict{a} state_dict_ema{b}", "ema", "state_dict_ema: b" },
	{ "model{a}", "ema", "! there are no averaged weights" },
	{ "ema{a} model_ema{b}", "ema", "! there are several averages" },
	{ "a b", "ema", "! there are no averaged weights" },
	{ "state{model{a} ema{b}} rng{r}", "ema", "state.ema: b" },
	{ "params{a} params_ema{b}", "", "params: a" },
	/* A map of names to tensors, with or without a rest. */
	{ "a b", "", ": a b" },
	{ "a.w b.w", "", ": a.w b.w" },
	{ "a.w b.w optimizer{x}", "", ": a.w b.w" },
	{ "weight bias optimizer{x}", "", ": weight bias" },
	{ "history optimizer{x}", "", "! it is in doubt" },
	{ "0.scale~ 0.packed{p}", "", ": 0.scale 0.packed" },
	{ "input_scaler.mean optim.w rng", "", ": input_scaler.mean optim.w "
	    "rng" },
	{ "a meta config", "", ": a meta config" },
	/* Names that tell nothing. */
	{ "my_net{a} optimizer{x}", "", "my_net: a" },
	{ "my_net{a} other!{x} best~", "", "my_net: a" },
	{ "my_net{a} history", "", "! it is in doubt" },
	{ "generator{a} optimizer{x}", "", "generator: a" },
	{ "generator{a} discriminator{b}", "", "! it is in doubt which part "
	    "is the model: generator (1 tensors), discriminator (1 tensors)" },
	{ "net{a} ema{b} scheduler{x}", "", "net: a" },
	{ "encoder{a} decoder{b}", "", "! it is in doubt" },
	/* Tops in tops. */
	{ "state{model{a} optimizers{x}} rng{r}", "", "state.model: a" },
	{ "state{model{a}} rng{r}", "", "state.model: a" },
	{ "checkpoint{model{a} optimizer!{x}} v~", "",
	    "checkpoint.model: a" },
	{ "a{b{c{d{e{model{w} optimizer!{x}}}}}}", "", "! it is in doubt" },
	{ "model{model{a}}", "", "model: model" },
	{ "model{language_model{a} optimizer_head{b}}", "",
	    "model: language_model optimizer_head" },
	/* Nothing but an optimizer. */
	{ "state!{s t}", "", "! it holds only the state of an optimizer" },
	{ "optimizer{a} scheduler{b}", "", "! it is in doubt" },
};

static void
test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct model_options options = {
			.ema = cases[i].ema[0] != '\0' };
		struct key_tree tree;
		struct model_choice choice;
		struct error error = ERROR_INIT;
		char *got;

		assert_ok(key_tree_init(&tree, &error), error);
		plant(&tree, tree.root, cases[i].tree);
		if (model_choice_make(&tree, &options, &choice, &error) != 0) {
			assert_int_equal(error.class, ERROR_USAGE);
			assert_non_null(strstr(error.cure, "--list-keys"));
			got = strdup(error.message);
		} else {
			got = describe(&tree, &choice);
		}
		if (cases[i].wanted[0] == '!' ? strncmp(got,
		    cases[i].wanted + 2, strlen(cases[i].wanted + 2)) != 0 :
		    strcmp(got, cases[i].wanted) != 0)
			fail_msg("%s: got \"%s\", not \"%s\"", cases[i].tree,
			    got, cases[i].wanted);
		free(got);
		key_tree_free(&tree);
	}
}

static const struct {
	const char *tree, *key, *wanted;
} keys[] = {
	{ "model{a b} optimizer{x}", "model", "model: a b" },
	{ "model{a b} optimizer{x}", ".", ": model optimizer" },
	{ "model{a b} optimizer{x}", "", ": model optimizer" },
	{ "model{a b}", "model.a", "model.a:" },
	{ "a{b{c d}}", "a.b", "a.b: c d" },
	{ "a.b{c}", "a.b", "a.b: c" },
	{ "a{x} a.b{c}", "a.b", "a.b: c" },
	{ "sd{layer.0.w layer.1.w layers.w}", "sd.layer",
	    "sd: layer.0.w layer.1.w" },
	{ "sd{layer.0.w layer.1.w}", "sd.layer.1", "sd: layer.1.w" },
	{ "sd{layer.0.w}", "sd.layer.0.w", "sd.layer.0.w:" },
	{ "layer.0.w head", "layer", ": layer.0.w" },
	{ "model{a}", "mode", "! no tensors lie under the key mode" },
	{ "model{a}", "model.", "model: a" },
	{ "model{a}", "model.a.b", "! no tensors lie under" },
	{ "model{a}", ".model", "! no tensors lie under" },
	{ "model{a}", "model..a", "! no tensors lie under" },
};

static void
test_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct model_options options = { .key = keys[i].key };
		struct key_tree tree;
		struct model_choice choice;
		struct error error = ERROR_INIT;
		char *got;

		assert_ok(key_tree_init(&tree, &error), error);
		plant(&tree, tree.root, keys[i].tree);
		got = model_choice_make(&tree, &options, &choice,
		    &error) != 0 ? strdup(error.message) :
		    describe(&tree, &choice);
		if (keys[i].wanted[0] == '!' ? strncmp(got,
		    keys[i].wanted + 2, strlen(keys[i].wanted + 2)) != 0 :
		    strcmp(got, keys[i].wanted) != 0)
			fail_msg("%s in %s: got \"%s\", not \"%s\"",
			    keys[i].key, keys[i].tree, got, keys[i].wanted);
		free(got);
		key_tree_free(&tree);
	}
}

/* Trees for people end, and show no control characters. */
static void
test_print(void **state)
{
	struct key_tree tree;
	struct buffer text;
	struct error error = ERROR_INIT;
	size_t lines = 0;
	char name[] = "a\nb\x1b";

	(void)state;
	assert_ok(key_tree_init(&tree, &error), error);
	for (int i = 0; i < 1000; i++) {
		struct key *key = key_tree_add(&tree, tree.root, KEY_TENSOR,
		    &error);

		key->name = i == 0 ? name : NULL;
		key->length = i == 0 ? 4 : 0;
		key->number = (uint64_t)i;
		assert_ok(key_tree_count(&tree, key, 8, &error), error);
	}
	buffer_init(&text, 1 << 20);
	assert_ok(key_tree_print(&tree, &text, &error), error);
	for (const char *at = text.data; *at != '\0'; at++)
		lines += *at == '\n';
	assert_int_equal(lines, 300);
	assert_int_equal(strncmp(text.data, "a?b?: 1 tensor, 8 bytes\n1: 1",
	    28), 0);
	assert_string_equal(text.data + text.length - 4, "...\n");
	buffer_free(&text);
	key_tree_free(&tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
