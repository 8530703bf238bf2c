#include "move/beneath.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit/move/scene.h"

/* A tree with links that lead out, back in, and nowhere. */
struct trap {
	char *root;
	int fd;			/* of root/in */
};

static void
link_to(const struct trap *trap, const char *target, const char *path)
{
	char *whole = path_join(trap->root, path);

	assert_int_equal(symlink(target, whole), 0);
	free(whole);
}

static struct trap
set_trap(void)
{
	struct trap trap = { .root = kit_scratch() };
	char *path = path_join(trap.root, "in/folder/file");

	kit_write_file(path, "inside", 6);
	free(path);
	path = path_join(trap.root, "out/file");
	kit_write_file(path, "outside", 7);
	free(path);
	link_to(&trap, "../out", "in/away");
	link_to(&trap, "folder", "in/back");
	link_to(&trap, "../../out/file", "in/folder/leak");
	link_to(&trap, "/etc", "in/absolute");
	path = path_join(trap.root, "in");
	trap.fd = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(trap.fd >= 0);
	free(path);
	return trap;
}

static void
refuse(const struct trap *trap, const char *path)
{
	struct stat status;
	int fd;

	fd = beneath_open(trap->fd, path, O_RDONLY, 0);
	assert_int_equal(fd, -1);
	assert_true(errno == ELOOP || errno == ENOTDIR || errno == EINVAL);
	fd = beneath_open(trap->fd, path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(fd, -1);
	/* The link itself may be looked at, not what lies beneath it. */
	if (strchr(path, '/') != NULL && strcmp(path, "folder/leak") != 0) {
		assert_int_equal(beneath_parent(trap->fd, path, true), -1);
		assert_int_equal(beneath_status(trap->fd, path, &status), -1);
		assert_null(beneath_link(trap->fd, path));
	}
}

static void
check_trap(void)
{
	struct trap trap = set_trap();
	struct stat status;
	char *target;
	int fd;

	fd = beneath_open(trap.fd, "folder/file", O_RDONLY, 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	fd = beneath_open(trap.fd, "folder/new", O_WRONLY | O_CREAT, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, 0);
	close(fd);
	assert_int_equal(beneath_open(trap.fd, "folder/none", O_RDONLY, 0),
	    -1);
	assert_int_equal(errno, ENOENT);
	refuse(&trap, "away/file");
	refuse(&trap, "away");
	refuse(&trap, "back/file");
	refuse(&trap, "folder/leak");
	refuse(&trap, "absolute/passwd");
	refuse(&trap, "../out/file");
	refuse(&trap, "folder/../../out/file");
	refuse(&trap, "/etc/passwd");
	refuse(&trap, "");
	refuse(&trap, ".");
	target = beneath_link(trap.fd, "away");
	assert_string_equal(target, "../out");
	free(target);
	assert_int_equal(beneath_status(trap.fd, "away", &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	fd = beneath_parent(trap.fd, "a/b/c/d", false);
	assert_int_equal(fd, -1);
	fd = beneath_parent(trap.fd, "a/b/c/d", true);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(beneath_status(trap.fd, "a/b/c", &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(beneath_status(trap.fd, "a/b/c/d", &status), -1);
	close(trap.fd);
	kit_scratch_remove(trap.root);
	free(trap.root);
}

static void
test_beneath(void **state)
{
	(void)state;
	check_trap();
}

/* The same where the kernel, or a container's filter, has no openat2. */
static void
check_without_openat2(int answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
		    SECCOMP_RET_ERRNO | ((uint32_t)answer & 0xffff)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(code) / sizeof(*code), .filter = code
	};
	int status;
	pid_t child;

	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
			_exit(2);
		check_trap();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
test_without_openat2(void **state)
{
	(void)state;
	check_without_openat2(ENOSYS);
	check_without_openat2(EPERM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beneath),
		cmocka_unit_test(test_without_openat2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
