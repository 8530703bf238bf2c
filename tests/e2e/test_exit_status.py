#!/usr/bin/python3
"""The table of exit statuses, and what signals do to `run`."""
import os
import signal
import sys
import time

import kit

# Saves when asked to by a file, ends when told to by another, says when TERM
# comes and then goes on for ever.
PATIENT = """
import os, signal, sys, time
sys.path[:0] = [{kit!r}]
import kit
signal.signal(signal.SIGTERM, lambda *_: (print("TERM", flush=True),
                                          sys.exit({status})))
signal.signal(signal.SIGUSR1, lambda *_: kit.write(
    {folder!r} + "/step-2.safetensors", kit.checkpoint(2)))
signal.signal(signal.SIGINT, lambda *_: print("INT", flush=True))
kit.write({folder!r} + "/step-1.safetensors", kit.checkpoint(1))
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


class ExitStatus(kit.Case):
    def shell(self, text, expect):
        return self.run_program("run", self.folder, self.remote, "--",
                                "sh", "-c", text, expect=expect)

    def test_the_trainers_status(self):
        self.shell("exit 0", 0)
        self.shell("exit 1", 1)
        self.shell("exit 42", 42)
        self.shell("kill -9 $$", 137)
        self.shell("kill -15 $$", 143)

    def test_a_command_that_cannot_be_run(self):
        self.run_program("run", self.folder, self.remote, "--",
                         self.path("missing"), expect=127)
        kit.write(self.path("plain"), "text")
        self.run_program("run", self.folder, self.remote, "--",
                         self.path("plain"), expect=126)

    def test_wrong_usage(self):
        for words in ([], ["fly"], ["run"], ["run", self.folder],
                      ["run", self.folder, self.remote],
                      ["run", self.folder, self.remote, "--"],
                      ["push", self.folder, "s3://"],
                      ["push", self.folder, "gopher://x/y"],
                      ["push", "--limit-rate", "12", self.folder,
                       self.remote],
                      ["run", "--grace", "25", self.folder, self.remote,
                       "--", "true"],
                      ["list", "--nonsense", self.remote]):
            done = self.run_program(*words, expect=2)
            self.assertTrue(done.err.strip(), words)
            self.assertEqual(done.out, "", words)

    def test_help_and_version(self):
        self.assertIn("run", self.run_program("--help").out)
        self.assertRegex(self.run_program("--version").out, r"\d+\.\d+\.\d+")
        for command in "run agent push restore list show".split():
            done = self.run_program(command, "--help")
            self.assertIn("--endpoint-url", done.out)

    def test_nothing_to_restore(self):
        os.mkdir(self.path("remote"))
        self.run_program("restore", self.remote, self.folder, expect=3)
        self.save("step-1.safetensors", 1)
        self.push()
        done = self.restore(self.path("fresh"), "--checkpoint",
                            "step-9.safetensors", expect=3)
        self.assertIn("step-9.safetensors", done.err)

    def patient(self, *options, status=0):
        path = self.path("patient.py")
        kit.write(path, PATIENT.format(kit=kit.HERE, folder=self.folder,
                                       status=status))
        life = self.start("run", *options, self.folder, self.remote, "--",
                          sys.executable, path)
        life.until("a trainer", lambda: b"ready" in kit.read(life.out))
        return life

    def test_a_notice_with_all_durable(self):
        life = self.patient("--grace", "4s", status=3)
        life.event("durable")
        life.signal(signal.SIGTERM)
        self.assertEqual(life.wait(), 75, str(life))
        self.assertIn(b"TERM", kit.read(life.out))

    def test_a_trainer_that_does_not_end(self):
        """It is killed while there is time for a last look: 75."""
        for number, (what, grace) in enumerate([
                ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "6s"),
                ("signal.pthread_sigmask(0, [signal.SIGTERM])", "2s"),
                ("os.kill(os.getpid(), signal.SIGSTOP)", "2s")]):
            folder = self.path(f"folder-{number}")
            kit.write(folder + "/step-1.safetensors", kit.checkpoint(1))
            life = self.start(
                "run", "--cloud", "none", "--grace", grace, folder,
                self.new_remote(f"remote-{number}"), "--", sys.executable,
                "-c", f"import os, signal, time; print('ready', flush=True); "
                f"{what}; time.sleep(1000)")
            life.event("durable")
            life.until("a trainer", lambda: b"ready" in kit.read(life.out))
            life.signal(signal.SIGTERM)
            began = time.monotonic()
            self.assertEqual(life.wait(), 75, str(life))
            self.assertLess(time.monotonic() - began, int(grace[0]))

    def test_a_notice_with_a_last_save(self):
        life = self.patient("--grace", "6s", "--save-signal", "USR1")
        life.event("durable")
        life.signal(signal.SIGTERM)
        self.assertEqual(life.wait(), 75, str(life))
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(kit.tree(fresh), {
            "step-2.safetensors": kit.sha256(kit.checkpoint(2))})

    def test_a_notice_without_time(self):
        """Nothing became durable at this rate: 6."""
        path = self.path("patient.py")
        kit.write(path, PATIENT.format(kit=kit.HERE, folder=self.folder,
                                       status=0)
                  .replace("checkpoint(1)", "checkpoint(1, size=1 << 28)"))
        life = self.start("run", "--grace", "1ms", "--limit-rate", "1MiB",
                          self.folder, self.remote, "--", sys.executable, path)
        life.until("a trainer", lambda: b"ready" in kit.read(life.out))
        life.signal(signal.SIGTERM)
        self.assertEqual(life.wait(), 6, str(life))

    def test_an_interrupt_reaches_the_trainer_once(self):
        life = self.patient()
        life.event("durable")
        life.signal(signal.SIGINT)
        life.until("INT", lambda: b"INT" in kit.read(life.out))
        self.assertIsNone(life.child.poll())
        self.assertEqual(kit.read(life.out).count(b"INT"), 1)
        life.signal(signal.SIGINT)
        self.assertNotEqual(life.wait(), 0)

    def test_a_parent_that_ignores_the_end_of_children(self):
        """Some supervisors and container starters do; nohup ignores HUP."""
        def ignore():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        done = self.run_program(
            "run", self.folder, self.remote, "--", "sh", "-c",
            "grep SigIgn /proc/self/status; exit 42", expect=42, patience=30,
            preexec_fn=ignore)
        ignored = int(done.out.split()[-1], 16)
        self.assertTrue(ignored & 1 << signal.SIGHUP - 1, done)
        self.assertFalse(ignored & 1 << signal.SIGCHLD - 1, done)
        self.save("step-1.safetensors", 1)
        done = self.run_program("push", "--json", self.folder, self.remote,
                                patience=30, preexec_fn=ignore)
        self.assertTrue(done.json["durable"])
        told = self.path("told")
        agent = self.start("agent", "--on-commit", f"echo yes >{told}",
                           self.folder, self.remote, preexec_fn=ignore)
        agent.event("began")
        self.save("step-2.safetensors", 2)
        agent.event("durable")
        agent.signal(signal.SIGINT)
        self.assertEqual(agent.wait(30), 0, str(agent))
        self.assertEqual(kit.read(told), b"yes\n")

    def test_an_agent_that_is_interrupted_knows_no_limit(self):
        for times, expect in ((1, 0), (2, 6)):
            size = 1 << 20 if times == 1 else 1 << 28
            folder = self.path(f"folder-{times}")
            agent = self.start("agent", "--cloud", "none", "--limit-rate",
                               "1B", folder,
                               self.new_remote(f"remote-{times}"))
            agent.event("began")
            kit.write(folder + "/step-1.safetensors",
                      kit.checkpoint(times, size=size))
            agent.event("complete")
            agent.signal(signal.SIGINT)
            if times == 2:
                agent.event("interrupted")
                agent.signal(signal.SIGINT)
            status = agent.wait(20)
            # The second may come when all is durable.
            self.assertIn(status, (0, expect), str(agent))

    def test_other_signals_are_forwarded(self):
        life = self.patient()
        life.event("durable")
        life.signal(signal.SIGUSR1)
        life.event("durable", count=2)
        life.signal(signal.SIGINT)
        life.until("INT", lambda: b"INT" in kit.read(life.out))
        life.signal(signal.SIGINT)
        life.wait()

    def test_the_agent_dies_and_the_trainer_goes_on(self):
        life = self.patient()
        life.event("durable")
        children = [pid for pid in kit.marked(self.mark)
                    if pid != life.child.pid
                    and b"patient.py" not in
                    kit.read(f"/proc/{pid}/cmdline").split(b"\0")[1]]
        self.assertTrue(children)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        life.signal(signal.SIGUSR1)
        time.sleep(0.2)
        self.assertIsNone(life.child.poll(), str(life))
        life.until("a new agent's commit", lambda: any(
            "step-2" in json_text(line) for line in life.events("durable")))
        life.signal(signal.SIGTERM)
        self.assertEqual(life.wait(), 75, str(life))


def json_text(line):
    return " ".join(str(value) for value in line.values())


class Apart(kit.Case):
    def refuse(self, folder, remote, commands):
        for command, *rest in commands:
            with self.subTest(command, folder=folder, remote=remote):
                done = self.run_program(command, folder, "file://" + remote,
                                        *rest, expect=2)
                self.assertIn("lies in the", done.err)

    def test_a_remote_inside_the_directory_or_around_it(self):
        self.save("step-1.safetensors", 1)
        os.symlink(self.folder, self.path("alias"))
        agents = (["push"], ["agent"], ["doctor"], ["run", "--", "true"])
        for folder, remote in (
                (self.folder, self.folder),
                (self.folder, self.folder + "/new/remote"),
                (self.path("alias"), self.folder + "/remote"),
                (self.folder, self.path("alias") + "/remote")):
            self.refuse(folder, remote, agents)
        self.assertEqual(list(kit.tree(self.folder)), ["step-1.safetensors"])
        inside = self.folder + "/deeper"
        os.mkdir(inside)
        self.refuse(inside, self.folder, (*agents, ["restore"]))
        # A name that only begins alike lies apart.
        self.run_program("push", self.folder, "file://" + self.folder + "-2")
        self.run_program("restore", self.path("."),
                         "file://" + self.folder + "-2")


class Wrong(kit.Case):
    def test_a_profile_that_is_not_there(self):
        for command in (["list"], ["show"], ["restore", self.path("new")],
                        ["weights", self.path("out")]):
            done = self.run_program(
                *command, "--profile", "no-such", "s3://bucket/run",
                environment={"AWS_ACCESS_KEY_ID": None,
                             "AWS_SECRET_ACCESS_KEY": None}, expect=2)
            self.assertIn("there is no such profile", done.err)
        # A file:// remote that is not there holds nothing.
        self.run_program("list", "file://" + self.path("nothing"), expect=3)

    def test_a_target_that_is_a_link_to_nowhere(self):
        self.save("step-1.safetensors", 1)
        self.push()
        os.symlink(self.path("nowhere"), self.path("link"))
        for options in [], ["--dry-run"]:
            done = self.restore(self.path("link"), *options, expect=1)
            self.assertIn("is a symbolic link to a directory that is not "
                          "there", done.err)
        self.assertFalse(os.path.exists(self.path("nowhere")))

    def test_a_glob_that_is_open(self):
        for option in "--include", "--exclude":
            for glob in "[", "a[b", "x" * 5000:
                done = self.restore(self.path("new"), option, glob, expect=2)
                self.assertIn("not a glob", done.err)


class Json(kit.Case):
    """Whoever asked for JSON gets one object, whatever comes of it."""
    def one(self, expect, *arguments):
        done = self.run_program(*arguments, "--json", expect=expect)
        return done.json

    def test_errors(self):
        nothing = "file://" + self.path("nothing")
        for expect, *arguments in (
                (3, "list", nothing), (3, "show", nothing),
                (3, "restore", nothing, self.path("new")),
                (3, "weights", nothing, self.path("out")),
                (2, "push", self.folder, "ftp://x"),
                (2, "list", "--no-such-option", nothing),
                (7, "status", self.folder), (7, "flush", self.folder),
                (7, "notice", self.folder)):
            with self.subTest(arguments):
                error = self.one(expect, *arguments)["error"]
                self.assertEqual(error["class"], expect)
                self.assertTrue(error["message"])
                self.assertLessEqual({"object", "cure"}, set(error))

    def test_success_has_no_error(self):
        self.save("step-1.safetensors", 1)
        self.assertNotIn("error", self.one(0, "push", self.folder,
                                           self.remote))
        agent = self.start("agent", self.folder, self.remote)
        agent.until("it listens", lambda: self.run_program(
            "status", self.folder, expect=None).status == 0)
        # Asked of the agent that holds the lock.
        self.assertNotIn("error", self.one(0, "push", self.folder,
                                           self.remote))
        agent.signal(signal.SIGINT)
        agent.wait()

    def test_success_without_content(self):
        nothing = "file://" + self.path("nothing")
        result = self.one(0, "restore", "--if-exists", nothing,
                          self.path("new"))
        self.assertEqual(result["checkpoints"], [])
        self.assertNotIn("error", result)
        self.save("step-1.safetensors", 1)
        result = self.one(0, "restore", "--if-empty", nothing, self.folder)
        self.assertEqual(result["checkpoints"], [])


if __name__ == "__main__":
    kit.main()
