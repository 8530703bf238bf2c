#include "base/role.h"

#include <stddef.h>
#include <string.h>

static const char *const words[] = {
	[ROLE_RESUME] = "resume",
	[ROLE_BEST] = "best",
	[ROLE_FINAL] = "final",
};

const char *
role_text(enum role role)
{
	return words[role];
}

int
role_parse(const char *text, enum role *role)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) == 0) {
			*role = (enum role)i;
			return 0;
		}
	}
	return -1;
}
