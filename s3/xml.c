#include <expat.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "s3/xml.h"

#define PATH_SIZE (XML_DEPTH_LIMIT * (XML_NAME_LIMIT + 1) + 1)

struct walk {
	XML_Parser parser;
	const struct xml_visitor *visitor;
	struct error *error;
	bool failed;	/* error says why */

	char path[PATH_SIZE];
	size_t ends[XML_DEPTH_LIMIT];	/* where each level of the path ends */
	size_t depth;
	struct buffer text;
};

static void
walk_fail(struct walk *walk)
{
	walk->failed = true;
	XML_StopParser(walk->parser, XML_FALSE);
}

static void
walk_refuse(struct walk *walk, enum error_cause cause, const char *why)
{
	error_set(walk->error, ERROR_DAMAGED, cause, NULL, "XML: %s", why);
	walk_fail(walk);
}

static void
on_begin(void *context, const XML_Char *name, const XML_Char **attributes)
{
	struct walk *walk = context;
	const char *colon = strrchr(name, ':');
	const char *local = colon != NULL ? colon + 1 : name;
	size_t length = strlen(local);
	size_t start = walk->depth > 0 ? walk->ends[walk->depth - 1] : 0;

	(void)attributes;
	if (walk->failed)
		return;
	if (walk->depth == XML_DEPTH_LIMIT || length > XML_NAME_LIMIT) {
		walk_refuse(walk, CAUSE_LIMIT,
		    "nested too deeply or too long a name");
		return;
	}
	snprintf(walk->path + start, sizeof(walk->path) - start, "%s%s",
	    walk->depth > 0 ? "/" : "", local);
	walk->ends[walk->depth++] = strlen(walk->path);
	buffer_clear(&walk->text);
	if (walk->visitor->begin != NULL && walk->visitor->begin(
	    walk->visitor->context, walk->path, walk->error) != 0)
		walk_fail(walk);
}

static void
on_end(void *context, const XML_Char *name)
{
	struct walk *walk = context;

	(void)name;
	if (walk->failed)
		return;
	if (walk->visitor->end != NULL && walk->visitor->end(
	    walk->visitor->context, walk->path, buffer_text(&walk->text),
	    walk->error) != 0) {
		walk_fail(walk);
		return;
	}
	walk->depth--;
	walk->path[walk->depth > 0 ? walk->ends[walk->depth - 1] : 0] = '\0';
	buffer_clear(&walk->text);
}

static void
on_text(void *context, const XML_Char *text, int length)
{
	struct walk *walk = context;
	size_t room = walk->text.limit - walk->text.length;
	size_t size = (size_t)length;

	if (walk->failed)
		return;
	if (size > room) {
		if (!walk->visitor->cut_texts) {
			walk_refuse(walk, CAUSE_LIMIT, "a text is too long");
			return;
		}
		size = room;
	}
	if (size > 0 && buffer_append(&walk->text, text, size,
	    walk->error) != 0)
		walk_fail(walk);
}

static void
on_document_type(void *context, const XML_Char *name, const XML_Char *system,
    const XML_Char *public, int internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)internal;
	walk_refuse(context, CAUSE_OTHER, "a document type is not allowed");
}

int
xml_walk(const void *data, size_t length, const struct xml_visitor *visitor,
    struct error *error)
{
	struct walk walk = { .visitor = visitor, .error = error };
	int result = 0;

	if (length > INT_MAX)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "XML: too large");
	walk.parser = XML_ParserCreate(NULL);
	if (walk.parser == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	buffer_init(&walk.text, XML_TEXT_LIMIT);
	XML_SetUserData(walk.parser, &walk);
	XML_SetElementHandler(walk.parser, on_begin, on_end);
	XML_SetCharacterDataHandler(walk.parser, on_text);
	XML_SetStartDoctypeDeclHandler(walk.parser, on_document_type);

	if (XML_Parse(walk.parser, data, (int)length, XML_TRUE) !=
	    XML_STATUS_OK) {
		result = -1;
		if (!walk.failed)
			error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
			    "XML: %s in line %lu", XML_ErrorString(
			    XML_GetErrorCode(walk.parser)), (unsigned long)
			    XML_GetCurrentLineNumber(walk.parser));
	}
	buffer_free(&walk.text);
	XML_ParserFree(walk.parser);
	return result;
}
