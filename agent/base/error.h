#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/*
 * The one error convention of the program.
 *
 * A function that can fail returns 0 or -1 (or a pointer or NULL) and fills
 * the `struct error` that its caller gave; errno does not cross a room.  An
 * error says what failed, on which object, and what to do.  It is a plain
 * value: it owns nothing, may be copied, and needs no freeing.  Its texts are
 * cut, never refused, when they are too long, and control characters in them
 * (foreign bytes end up here) are replaced by '?'.
 */

/* What the failure means to the user.  The class is the exit code. */
enum error_class {
	ERROR_NONE = 0,
	ERROR_FAILED = 1,	/* it did not work */
	ERROR_USAGE = 2,	/* the command line or a setting is wrong */
	ERROR_NOTHING = 3,	/* there is nothing to restore */
	ERROR_DAMAGED = 4,	/* data is not what it should be */
	ERROR_SUPERSEDED = 5,	/* a newer agent has taken over */
	ERROR_NOT_DURABLE = 6,	/* what is complete here is not durable */
	ERROR_NO_AGENT = 7	/* no agent is running here */
};

/* What code above can act on.  Several causes share a class. */
enum error_cause {
	CAUSE_OTHER = 0,
	CAUSE_NOT_FOUND,	/* the object is not there, and that is certain */
	CAUSE_EXISTS,		/* something is there that must not be replaced */
	CAUSE_UNREACHABLE,	/* no answer, or a passing fault: later may work */
	CAUSE_DENIED,		/* not allowed; trying again will not help */
	CAUSE_REFUSED,		/* the payload did not fit its signed hash */
	CAUSE_CHANGED,		/* a local file changed while it was read */
	CAUSE_CANCELLED,	/* the caller asked to stop */
	CAUSE_NO_SPACE,		/* disk full or quota reached */
	CAUSE_LIMIT,		/* foreign data asks for more than we allow */
	CAUSE_FEATURE,		/* written by a newer ckptsync: unknown needed feature */
	CAUSE_UNSUPPORTED,	/* the system or store cannot do this */
	CAUSE_MEMORY
};

struct error {
	enum error_class class;
	enum error_cause cause;
	char object[320];	/* key, path or address; may be empty */
	char message[640];	/* what failed */
	char cure[320];		/* what to do; may be empty */
};

/* An error that says nothing yet. */
#define ERROR_INIT { .class = ERROR_NONE }

/**
 * error_set(error, class, cause, object, format, ...):
 * Fill ${error} anew; ${object} may be NULL.  Return -1, always, so that a
 * caller can write `return error_set(...)`.
 */
int error_set(struct error *error, enum error_class class,
    enum error_cause cause, const char *object, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/**
 * error_set_errno(error, number, object, format, ...):
 * Fill ${error} from the errno value ${number}: class ERROR_FAILED, the cause
 * that fits (ENOENT: not found, EEXIST: exists, EACCES, EPERM, EROFS: denied,
 * ENOSPC, EDQUOT: no space, ENOMEM: memory), the formatted text followed by
 * ": " and the system's text.  Adds a cure where one is known.  Return -1.
 */
int error_set_errno(struct error *error, int number, const char *object,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/**
 * error_cure(error, format, ...):
 * Say what to do about ${error}, replacing an earlier cure.  Return -1.
 */
int error_cure(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * error_prefix(error, format, ...):
 * Put a formatted text and ": " before the message.  Return -1.
 */
int error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * error_clear(error):
 * Make ${error} say nothing.
 */
void error_clear(struct error *error);

/* So that the compiler, where it looks for values that were never set, sees
 * what these return. */
static inline int
error_minus_one(int result)
{
	(void)result;
	return -1;
}
#define error_set(...) error_minus_one(error_set(__VA_ARGS__))
#define error_set_errno(...) error_minus_one(error_set_errno(__VA_ARGS__))
#define error_cure(...) error_minus_one(error_cure(__VA_ARGS__))
#define error_prefix(...) error_minus_one(error_prefix(__VA_ARGS__))

/* Room for every text that error_text makes. */
#define ERROR_TEXT_SIZE 1344

/**
 * error_text(error, text):
 * Write "object: message (cure)" into ${text}, leaving out what is empty, and
 * return ${text}.
 */
char *error_text(const struct error *error, char text[ERROR_TEXT_SIZE]);

#endif
