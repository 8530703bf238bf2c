#ifndef WATCH_LINK_H
#define WATCH_LINK_H

struct error;
struct stat;

/*
 * Where a symbolic link in the directory leads, and how it is kept (DESIGN 6):
 * one that stays inside is kept as a relative link, one to a file outside as
 * that file's content, one to nothing not at all.
 *
 * A link to a folder outside is not kept either: what is behind it (data
 * sets, home directories) may be larger than everything that matters here.
 * That is said.
 */

enum link_kind { LINK_INSIDE, LINK_OUTSIDE, LINK_NOWHERE };

struct link {
	char *target;	/* LINK_INSIDE: its text, relative */
	char *resolved;	/* LINK_INSIDE: what it leads to in the end */
};

/**
 * link_look(root, path, folder, name, link, content, note):
 * Look at the link ${name} in the open ${folder}; ${path} is its path beneath
 * the directory whose path without links is ${root}.  Fills ${link} for
 * LINK_INSIDE (the caller's, see link_clear) and *${content} for
 * LINK_OUTSIDE.  What a user should know goes into ${note}.
 */
enum link_kind link_look(const char *root, const char *path, int folder,
    const char *name, struct link *link, struct stat *content,
    struct error *note);

/**
 * link_clear(link):
 * Free what it holds.
 */
void link_clear(struct link *link);

#endif
