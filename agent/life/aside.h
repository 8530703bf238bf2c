#ifndef LIFE_ASIDE_H
#define LIFE_ASIDE_H

struct checkpoint;
struct error;

/*
 * Checkpoints moved out of a trainer's sight, within the directory and so
 * within its file system: `.ckptsync-torn-<time>/` and
 * `.ckptsync-replaced-<time>/`.  Nothing is ever deleted.
 */
struct aside {
	const char *folder;	/* real path of the directory */
	const char *kind;	/* "torn", "replaced" */
	char name[64];		/* of the folder, once it was made */
};

/**
 * aside_move(aside, checkpoint, error):
 * Move all files of ${checkpoint} away, keeping their paths beneath the new
 * folder.  What is gone already is fine.  Return 0 or -1.
 */
int aside_move(struct aside *aside, const struct checkpoint *checkpoint,
    struct error *error);

#endif
