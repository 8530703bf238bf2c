#include "life/finding.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static void
make_harmless(char *text)
{
	for (; *text != '\0'; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
}

void
finding_set(struct finding *finding, enum finding_state state,
    const char *check, const char *format, ...)
{
	va_list arguments;

	finding_free(finding);
	finding->state = state;
	finding->check = check;
	finding->cure[0] = '\0';
	va_start(arguments, format);
	vsnprintf(finding->message, sizeof(finding->message), format,
	    arguments);
	va_end(arguments);
	make_harmless(finding->message);
}

void
finding_add(struct finding *finding, const char *format, ...)
{
	size_t length = strlen(finding->message);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->message + length,
	    sizeof(finding->message) - length, format, arguments);
	va_end(arguments);
	make_harmless(finding->message + length);
}

void
finding_cure(struct finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->cure, sizeof(finding->cure), format, arguments);
	va_end(arguments);
	make_harmless(finding->cure);
}

void
finding_fail(struct finding *finding, enum finding_state state,
    const char *check, const struct error *error)
{
	finding_set(finding, state, check, "%s%s%s", error->object,
	    error->object[0] != '\0' ? ": " : "", error->message);
	finding_cure(finding, "%s", error->cure);
}

void
finding_fact(struct finding *finding, const char *name, json_t *value)
{
	if (finding->facts == NULL)
		finding->facts = json_object();
	if (finding->facts == NULL)
		json_decref(value);
	else
		(void)json_object_set_new(finding->facts, name, value);
}

const char *
finding_state_text(enum finding_state state)
{
	static const char *const texts[] = {
		[FINDING_OK] = "ok", [FINDING_HINT] = "hint",
		[FINDING_WRONG] = "wrong", [FINDING_LEFT_OUT] = "left out",
	};

	return texts[state];
}

void
finding_free(struct finding *finding)
{
	json_decref(finding->facts);
	finding->facts = NULL;
}
