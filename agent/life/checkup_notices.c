#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/unit.h"
#include "life/checkup_private.h"
#include "life/judgement.h"
#include "life/settings.h"
#include "notice/notice.h"
#include "s3/metadata.h"

/* Azure's first answer may take longer still. */
#define PATIENCE (12 * CLOCK_SECOND)

/* After the first word: a notice that is in force comes with it. */
#define LINGER (500 * CLOCK_MILLISECOND)

/* Where AWS, Google, Azure and others have their metadata server. */
#define METADATA_ADDRESS "169.254.169.254"
#define METADATA_PORT 80
#define CONNECT_PATIENCE 1000	/* milliseconds */

/* What the watch had to say. */
struct hearing {
	bool heard;
	struct notice sight;		/* the last of SEEING and BLIND */
	bool going;
	struct notice deadline;
	bool hinted;
	struct notice hint;
};

static void
take(struct hearing *hearing, const struct notice *notice)
{
	switch (notice->kind) {
	case NOTICE_SEEING:
	case NOTICE_BLIND:
		hearing->heard = true;
		hearing->sight = *notice;
		break;
	case NOTICE_DEADLINE:
		hearing->going = true;
		hearing->deadline = *notice;
		break;
	case NOTICE_HINT:
		hearing->hinted = true;
		hearing->hint = *notice;
		break;
	case NOTICE_WITHDRAWN:
		break;
	}
}

static void
listen_for(struct checkup_part *part, struct notice_watch *watch,
    struct hearing *hearing)
{
	uint64_t limit = clock_monotonic() + PATIENCE, now;
	struct pollfd ready = { .fd = notice_fd(watch), .events = POLLIN };
	struct notice notice;

	while ((now = clock_monotonic()) < limit &&
	    !atomic_load(&part->checkup->stop)) {
		uint64_t left = (limit - now) / CLOCK_MILLISECOND + 1;

		poll(&ready, 1, left < 100 ? (int)left : 100);
		while (notice_next(watch, &notice)) {
			if (!hearing->heard && (notice.kind == NOTICE_SEEING ||
			    notice.kind == NOTICE_BLIND))
				limit = clock_monotonic() + LINGER;
			take(hearing, &notice);
		}
	}
}

/*
 * Try to connect to the metadata server's address.  Return the errno value of
 * what fails at once, which is this machine's own doing; else 0, and set
 * *${answers} when somebody takes the connection.
 */
static int
try_route(bool *answers)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
	    .sin_port = htons(METADATA_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	int number = 0, outcome = -1;
	socklen_t size = sizeof(outcome);

	*answers = false;
	if (fd < 0)
		return 0;
	inet_pton(AF_INET, METADATA_ADDRESS, &address.sin_addr);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 &&
	    errno != EINPROGRESS)
		number = errno;
	else if (poll(&ready, 1, CONNECT_PATIENCE) > 0 && getsockopt(fd,
	    SOL_SOCKET, SO_ERROR, &outcome, &size) == 0)
		*answers = outcome == 0;
	close(fd);
	return number;
}

/* No cloud was found; is that because somebody closed the way on purpose? */
static void
judge_no_cloud(struct finding *finding, const struct notice *sight)
{
	bool answers;
	int number = try_route(&answers);

	finding_fail(finding, FINDING_HINT, "notices", &sight->error);
	if (number == EACCES || number == EPERM || number == EINVAL ||
	    number == EHOSTUNREACH) {
		finding_set(finding, FINDING_WRONG, "notices", "the way to "
		    METADATA_ADDRESS ", where clouds say that a machine "
		    "goes, is blocked: %s", number == EINVAL ?
		    "its route is a blackhole" : strerror(number));
		finding_cure(finding, "allow it: look at `ip route get "
		    METADATA_ADDRESS "` and the firewall (with systemd-imdsd: "
		    "systemd.imds.network=unlocked); or say --cloud none");
	} else if (metadata_disabled()) {
		finding_add(finding, "; AWS's was not asked, since "
		    "AWS_EC2_METADATA_DISABLED is set");
	} else if (answers) {
		finding_set(finding, FINDING_HINT, "notices", "somebody "
		    "answers at " METADATA_ADDRESS ", but like none of the "
		    "clouds whose notices ckptsync knows: only signals and "
		    "`ckptsync notice` tell that this machine goes");
		finding_cure(finding, "if this is a machine of AWS, Google, "
		    "Azure, Alibaba or Tencent, name it with --cloud to see "
		    "what is refused; else say --cloud none");
	}
}

/* The cause first: what follows are the words of a network library. */
static void
judge_blind(struct finding *finding, const struct notice *sight)
{
	finding_set(finding, strcmp(sight->reason, "silent cloud") == 0 ?
	    FINDING_HINT : FINDING_WRONG, "notices",
	    "%s's cannot be seen from here (%s): %s",
	    judgement_cloud(sight->source), sight->reason,
	    sight->error.message);
	finding_cure(finding, "%s", sight->error.cure);
	if (sight->error.object[0] != '\0')
		finding_fact(finding, "object",
		    json_string(sight->error.object));
}

static void
judge_sight(struct checkup_part *part, struct finding *finding,
    const struct notice *sight)
{
	uint64_t window = notice_window(&part->checkup->settings->notice,
	    sight->source);
	char text[UNIT_TEXT_SIZE];

	if (sight->kind == NOTICE_SEEING)
		finding_set(finding, FINDING_OK, "notices", "%s's can be seen "
		    "from here; it usually gives %s",
		    judgement_cloud(sight->source),
		    unit_duration_text(window, text));
	else if (strcmp(sight->reason, "no cloud") == 0)
		judge_no_cloud(finding, sight);
	else
		judge_blind(finding, sight);
	if (sight->kind == NOTICE_BLIND)
		finding_fact(finding, "cause", json_string(sight->reason));
	if (window == 0)
		return;
	finding_fact(finding, "source", json_string(sight->source));
	finding_fact(finding, "window_s", json_real((double)window /
	    (double)CLOCK_SECOND));
	pthread_mutex_lock(&part->checkup->lock);
	part->checkup->facts.window = window;
	memcpy(part->checkup->facts.source, sight->source,
	    sizeof(sight->source));
	pthread_mutex_unlock(&part->checkup->lock);
}

static void
judge_silence(struct checkup_part *part, struct finding *finding)
{
	enum notice_cloud cloud = part->checkup->settings->notice.cloud;
	const char *name = machine_cloud();
	bool azure = cloud == NOTICE_CLOUD_AZURE || (cloud ==
	    NOTICE_CLOUD_AUTO && name != NULL && strcmp(name, "azure") == 0);

	finding_set(finding, FINDING_HINT, "notices",
	    "no word from the metadata server within %d s",
	    (int)(PATIENCE / CLOCK_SECOND));
	finding_cure(finding, azure ? "the first answer on a machine of "
	    "Azure may take two minutes: run doctor again then" :
	    "run doctor again");
}

static void
say_what_is_in_force(struct checkup_part *part,
    const struct hearing *hearing)
{
	struct finding finding = FINDING_INIT;
	uint64_t now = clock_monotonic();
	char left[UNIT_TEXT_SIZE];

	if (hearing->going) {
		finding_set(&finding, FINDING_WRONG, "notices", "a notice is "
		    "in force: %s, %s, %s left", hearing->deadline.source,
		    hearing->deadline.reason, unit_duration_text(
		    hearing->deadline.deadline > now ?
		    hearing->deadline.deadline - now : 0, left));
		finding_cure(&finding, "start nothing on this machine; "
		    "it goes");
		checkup_say(part, &finding);
	}
	if (hearing->hinted) {
		finding_set(&finding, FINDING_HINT, "notices", "%s: %s; "
		    "this machine may go soon", hearing->hint.source,
		    hearing->hint.reason);
		checkup_say(part, &finding);
	}
}

/* Whether a list of hosts as in NO_PROXY names ${host}. */
static bool
names_host(const char *list, const char *host)
{
	for (; *list != '\0'; list += *list == ',') {
		size_t length = strcspn(list, ",");
		const char *word = list + strspn(list, " ");
		size_t size = length - (size_t)(word - list);

		while (size > 0 && word[size - 1] == ' ')
			size--;
		if ((size == 1 && *word == '*') || (size == strlen(host) &&
		    strncasecmp(word, host, size) == 0) ||
		    (size >= 11 && strncmp(word, "169.254.0.0", 11) == 0))
			return true;
		list += length;
	}
	return false;
}

/*
 * Other programs on this machine (AWS's SDKs, the trainer's own) would ask
 * the proxy for the metadata; requests that came through one are refused.
 */
static void
check_proxy(struct checkup_part *part)
{
	static const char *const variables[] = { "http_proxy", "HTTP_PROXY",
	    "all_proxy", "ALL_PROXY" };
	const char *found = NULL, *without = getenv("no_proxy");
	struct finding finding = FINDING_INIT;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) &&
	    found == NULL; i++)
		if (getenv(variables[i]) != NULL &&
		    *getenv(variables[i]) != '\0')
			found = variables[i];
	if (without == NULL)
		without = getenv("NO_PROXY");
	if (found == NULL)
		return;
	if (without != NULL && names_host(without, METADATA_ADDRESS)) {
		finding_set(&finding, FINDING_OK, "proxy",
		    "%s is set, and not for " METADATA_ADDRESS, found);
	} else {
		finding_set(&finding, FINDING_HINT, "proxy", "%s is set, also "
		    "for " METADATA_ADDRESS ": ckptsync asks for notices past "
		    "it, other programs will not get any answer there",
		    found);
		finding_cure(&finding, "add " METADATA_ADDRESS " to no_proxy "
		    "and NO_PROXY");
	}
	checkup_say(part, &finding);
}

void
checkup_notices(struct checkup_part *part)
{
	const struct settings *settings = part->checkup->settings;
	struct finding finding = FINDING_INIT;
	struct hearing hearing = { 0 };
	struct error error = ERROR_INIT;
	struct notice_watch *watch;

	check_proxy(part);
	if (settings->notice.cloud == NOTICE_CLOUD_NONE) {
		finding_set(&finding, FINDING_OK, "notices", "none are looked "
		    "for (--cloud none): SIGTERM and `ckptsync notice` tell");
		checkup_say(part, &finding);
		return;
	}
	checkup_doing(part, "asking for notices");
	watch = notice_start(&settings->notice, &error);
	if (watch == NULL) {
		finding_fail(&finding, FINDING_WRONG, "notices", &error);
		checkup_say(part, &finding);
		return;
	}
	listen_for(part, watch, &hearing);
	if (hearing.heard)
		judge_sight(part, &finding, &hearing.sight);
	else
		judge_silence(part, &finding);
	checkup_say(part, &finding);
	say_what_is_in_force(part, &hearing);
	notice_free(watch);
}
