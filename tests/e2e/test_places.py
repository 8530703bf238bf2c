#!/usr/bin/python3
"""Where ckptsync must work: without root, with a read-only home, in a
container without /run/user, as process 1."""
import os
import shutil
import subprocess
import sys
import unittest

import kit

ROOT = os.geteuid() == 0
NOBODY = 65534


def can_unshare():
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False).returncode == 0


class Places(kit.Case):
    def save_script(self):
        data = self.path("data")
        kit.write(data, kit.checkpoint(1))
        return ["sh", "-c", f"mkdir -p {self.folder} && "
                f"cp {data} {self.folder}/step-1.safetensors"]

    def check_restored(self, **how):
        fresh = self.path("fresh")
        self.restore(fresh, **how)
        self.assertEqual(kit.tree(fresh), {
            "step-1.safetensors": kit.sha256(kit.checkpoint(1))})

    def quiet_environment(self, home):
        """Nothing that says where state or sockets could go."""
        return {"HOME": home, "CKPTSYNC_STATE_DIR": None,
                "XDG_STATE_HOME": None, "XDG_RUNTIME_DIR": None,
                "TMPDIR": None}

    @unittest.skipUnless(ROOT, "needs root to become nobody")
    def test_nobody_with_a_read_only_home(self):
        home = self.path("home")
        os.mkdir(home, 0o555)
        os.chmod(self.scratch, 0o755)
        for name in ("checkpoints", "remote", "work"):
            os.mkdir(self.path(name))
            os.chown(self.path(name), NOBODY, NOBODY)
        kit.write(self.path("data"), kit.checkpoint(1))
        program = self.program_for_everybody()
        script = self.save_script()
        self.as_nobody(program, home, "run", self.folder, self.remote, "--",
                       *script)
        fresh = self.path("work", "fresh")
        self.as_nobody(program, home, "restore", self.remote, fresh)
        self.assertEqual(kit.tree(fresh), {
            "step-1.safetensors": kit.sha256(kit.checkpoint(1))})
        self.assertEqual(os.stat(fresh + "/step-1.safetensors").st_uid,
                         NOBODY)
        self.assertEqual(os.listdir(home), [])

    def program_for_everybody(self):
        """The build folder may be closed to others."""
        program = self.path("ckptsync")
        shutil.copy(kit.PROGRAM, program)
        os.chmod(program, 0o755)
        return program

    def as_nobody(self, program, home, *words):
        done = self.run_program(
            "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", program,
            *words, program="setpriv",
            environment=self.quiet_environment(home), cwd="/")
        self.assertNotIn("denied", done.out)

    def test_a_home_that_is_a_file(self):
        """As root a read-only home is written to all the same."""
        home = self.path("home")
        kit.write(home, "")
        self.run_program("run", self.folder, self.remote, "--",
                         *self.save_script(),
                         environment=self.quiet_environment(home))
        self.check_restored(environment=self.quiet_environment(home))

    @unittest.skipUnless(can_unshare(), "needs a namespace of its own")
    def test_as_process_1_without_run_user(self):
        """`docker run IMAGE ckptsync run ...`: PID 1, no /run/user."""
        script = self.path("container")
        kit.write(script, f"""
            set -e
            mount -t tmpfs none /run
            [ $$ = 1 ]
            exec "$@"
        """)
        # An orphan must be reaped, and the trainer's status must come back.
        orphan = self.path("orphan")
        self.run_program(
            "--mount", "--pid", "--fork", "--mount-proc", "sh", script,
            kit.PROGRAM, "run", self.folder, self.remote, "--", "sh", "-c",
            " ".join(self.save_script()[2:]) + f"; (sh -c 'sleep 0.2; "
            f"ps -o ppid= -p $$ >{orphan}' &) ; sleep 0.6; "
            "! ps -eo stat= | grep -q Z", program="unshare",
            environment=self.quiet_environment("/nonexistent"))
        self.assertEqual(kit.read(orphan).split(), [b"1"])
        self.check_restored()

    @unittest.skipUnless(can_unshare(), "needs a namespace of its own")
    def test_process_1_gets_a_notice(self):
        """SIGTERM to PID 1, as `docker stop` sends it."""
        container = kit.Process(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
             kit.PROGRAM, "run", "--log-format", "json", "--grace", "3s",
             self.folder, self.remote, "--", "sh", "-c",
             " ".join(self.save_script()[2:]) + "; exec sleep 1000"],
            self.environment, self.path("log"), self.path("out"))
        container.event("durable")
        first = [pid for pid in kit.marked(self.mark)
                 if b"--grace" in kit.read(f"/proc/{pid}/cmdline")
                 and pid != container.child.pid]
        os.kill(min(first), 15)
        self.assertEqual(container.wait(), 75, str(container))
        self.check_restored()

    def test_everything_from_a_strange_folder(self):
        """Relative places, names with blanks and not UTF-8."""
        name = os.fsdecode(b"caf\xe9 1")
        odd = self.path("a b")
        os.makedirs(os.path.join(odd, "ck pt"))
        kit.write(os.path.join(odd, "ck pt", name + ".safetensors"),
                  kit.checkpoint(1))
        self.run_program("push", "ck pt", "file://" + odd + "/re mote",
                         cwd=odd)
        self.run_program("restore", "file://" + odd + "/re mote", "b a",
                         cwd=odd)
        self.assertEqual(kit.tree(os.path.join(odd, "b a")),
                         kit.tree(os.path.join(odd, "ck pt")))


if __name__ == "__main__":
    kit.main()
