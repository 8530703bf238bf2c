#include "life/trainer.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"

/* As much as the kernel takes for one argument (MAX_ARG_STRLEN). */
#define ARGUMENT_MAXIMUM (128 * 1024)

struct list {
	char **items;	/* NULL at the end */
	size_t count;
};

static int
list_add(struct list *list, const char *text, struct error *error)
{
	char **more = reallocarray(list->items, list->count + 2,
	    sizeof(*more));

	if (more != NULL)
		list->items = more;
	if (more == NULL || (more[list->count] = strdup(text)) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the trainer's command line");
	list->items[++list->count] = NULL;
	return 0;
}

/* Add ${text} with every ${mark} replaced by ${value}. */
static int
list_add_filled(struct list *list, const char *text, const char *mark,
    const char *value, struct error *error)
{
	struct buffer buffer;
	const char *found;
	int result = -1;

	buffer_init(&buffer, ARGUMENT_MAXIMUM);
	while ((found = strstr(text, mark)) != NULL) {
		if (buffer_append(&buffer, text, (size_t)(found - text),
		    error) != 0 ||
		    buffer_append(&buffer, value, strlen(value), error) != 0)
			goto done;
		text = found + strlen(mark);
	}
	if (buffer_append(&buffer, text, strlen(text), error) == 0)
		result = list_add(list, buffer_text(&buffer), error);
done:
	buffer_free(&buffer);
	return result;
}

/*
 * The next word of ${*text} into ${word}, as a shell would split it.  Return
 * 1, 0 at the end, -1 for a quote that is not closed.
 */
static int
next_word(const char **text, struct buffer *word, struct error *error)
{
	const char *at = *text + strspn(*text, " \t\n");
	char quote = '\0';

	buffer_clear(word);
	if (*at == '\0')
		return 0;
	for (; *at != '\0'; at++) {
		if (quote == '\0' && strchr(" \t\n", *at) != NULL)
			break;
		if (quote == '\0' && (*at == '\'' || *at == '"')) {
			quote = *at;
			continue;
		}
		if (quote != '\0' && *at == quote) {
			quote = '\0';
			continue;
		}
		if (*at == '\\' && quote != '\'' && at[1] != '\0')
			at++;
		if (buffer_append(word, at, 1, error) != 0)
			return -1;
	}
	*text = at;
	if (quote != '\0')
		return error_set(error, ERROR_USAGE, CAUSE_OTHER,
		    "--resume-args", "a quote is not closed");
	return 1;
}

static int
add_words(struct list *list, const char *text, const char *restored,
    struct error *error)
{
	struct buffer word;
	int more;

	buffer_init(&word, ARGUMENT_MAXIMUM);
	while ((more = next_word(&text, &word, error)) == 1)
		if (list_add_filled(list, buffer_text(&word), "{}", restored,
		    error) != 0) {
			more = -1;
			break;
		}
	buffer_free(&word);
	return more;
}

char **
trainer_arguments(char *const *command, const char *restored,
    const char *resume_arguments, struct error *error)
{
	struct list list = { 0 };

	for (; *command != NULL; command++)
		if (list_add_filled(&list, *command, "{restored}", restored,
		    error) != 0)
			goto fail;
	/* Even when it is not needed: a mistake shows at the first start. */
	if (resume_arguments != NULL) {
		size_t before = list.count;

		if (add_words(&list, resume_arguments, restored, error) != 0)
			goto fail;
		while (restored[0] == '\0' && list.count > before) {
			free(list.items[--list.count]);
			list.items[list.count] = NULL;
		}
	}
	return list.items;
fail:
	trainer_arguments_free(list.items);
	return NULL;
}

void
trainer_arguments_free(char **arguments)
{
	size_t i;

	for (i = 0; arguments != NULL && arguments[i] != NULL; i++)
		free(arguments[i]);
	free(arguments);
}
