#include "move/pointer.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "move/beneath.h"

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static int
open_file(int folder, const struct checkpoint_entry *entry)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

	return entry->follow ? openat(folder, entry->path, flags) :
	    beneath_open(folder, entry->path, flags, 0);
}

/* Return what is wrong with it, or NULL. */
static const char *
read_file(int folder, struct pointer *pointer, struct error *error)
{
	struct checkpoint_entry *entry = &pointer->entry;
	struct stat status;
	ssize_t length = -1;
	int fd;

	if ((fd = open_file(folder, entry)) == -1)
		return "it cannot be opened";
	if ((pointer->data = malloc(POINTER_MAXIMUM + 1)) == NULL)
		out_of_memory(error);
	else if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		length = pread(fd, pointer->data, POINTER_MAXIMUM + 1, 0);
	close(fd);
	if (length < 0)
		return "it cannot be read";
	if ((size_t)length > POINTER_MAXIMUM)
		return "it is too large for a pointer";
	pointer->data[length] = '\0';
	entry->identity = identity_of(&status);
	entry->identity.size = (uint64_t)length;
	pointer->memory.data = pointer->data;
	pointer->memory.length = (size_t)length;
	pointer->source = source_from_memory(&pointer->memory);
	return NULL;
}

static void
free_one(struct pointer *pointer)
{
	free(pointer->entry.path);
	free(pointer->entry.target);
	free(pointer->data);
	memset(pointer, 0, sizeof(*pointer));
}

static int
read_one(int folder, const struct checkpoint_entry *seen,
    enum log_level level, struct pointers *pointers, struct error *error)
{
	struct pointer *pointer = &pointers->all[pointers->count];
	const char *trouble = NULL;
	struct error failure = ERROR_INIT;

	pointer->entry = *seen;
	pointer->entry.target = NULL;
	if ((pointer->entry.path = strdup(seen->path)) == NULL)
		return out_of_memory(error);
	if (seen->kind == ENTRY_FILE) {
		trouble = read_file(folder, pointer, &failure);
	} else if (seen->kind == ENTRY_LINK) {
		pointer->entry.target = beneath_link(folder, seen->path);
		if (pointer->entry.target == NULL)
			trouble = "it cannot be read";
	} else {
		trouble = "it is a directory";
	}
	if (trouble == NULL) {
		pointers->count++;
		return 0;
	}
	free_one(pointer);
	if (failure.class != ERROR_NONE) {
		*error = failure;
		return -1;
	}
	log_line(level, "left_out", "%s is left out of this commit: %s",
	    seen->path, trouble);
	return 0;
}

int
pointer_read_all(int folder, const struct surroundings *seen,
    enum log_level level, struct pointers *pointers, struct error *error)
{
	size_t i;

	pointers->count = 0;
	pointers->all = calloc(seen->pointer_count + 1,
	    sizeof(*pointers->all));
	if (pointers->all == NULL)
		return out_of_memory(error);
	for (i = 0; i < seen->pointer_count; i++)
		if (read_one(folder, &seen->pointers[i], level, pointers,
		    error) == -1)
			return -1;
	return 0;
}

static bool
is_word_character(char character)
{
	return isalnum((unsigned char)character) || character == '_' ||
	    character == '-' || character == '=';
}

/* Whether ${word} stands in ${text}, not as a part of a longer word. */
static bool
has_word(const char *text, const char *word)
{
	size_t length = strlen(word);
	const char *at;

	for (at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
		if ((at == text || !is_word_character(at[-1])) &&
		    !is_word_character(at[length]))
			return true;
	return false;
}

/* Whether ${text} is the number and nothing else but white space. */
static bool
is_number(const char *text, uint64_t number)
{
	char digits[24];
	int length;

	length = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	return strncmp(text, digits, (size_t)length) == 0 &&
	    text[length + (int)strspn(text + length, " \r\n")] == '\0';
}

bool
pointer_names(const struct pointer *pointer,
    const struct checkpoint *checkpoint)
{
	const char *text = pointer->entry.kind == ENTRY_LINK ?
	    pointer->entry.target : pointer->data;

	return has_word(text, path_base(checkpoint->name)) ||
	    (checkpoint->has_step && is_number(text, checkpoint->step));
}

struct pointer *
pointer_find(const struct pointers *pointers, const char *path)
{
	size_t i;

	for (i = 0; i < pointers->count; i++)
		if (strcmp(pointers->all[i].entry.path, path) == 0)
			return &pointers->all[i];
	return NULL;
}

void
pointer_free_all(struct pointers *pointers)
{
	size_t i;

	for (i = 0; i < pointers->count; i++)
		free_one(&pointers->all[i]);
	free(pointers->all);
	memset(pointers, 0, sizeof(*pointers));
}
