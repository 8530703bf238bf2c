#!/usr/bin/python3
"""What `run` does before the trainer (DESIGN 9), and what an agent answers."""
import glob
import json
import os
import shutil
import signal
import socket
import time

import kit

NAME = "last.safetensors"


class Start(kit.Case):
    def run_once(self, *options, command=("true",), **how):
        return self.run_program("run", *options, self.folder, self.remote,
                                "--", *command, **how)

    def restored(self, *options, folder=None):
        """What the trainer is told to go on from."""
        out = self.path("told")
        self.run_program("run", *options, folder or self.folder, self.remote,
                         "--", "sh", "-c", f"printf %s \"$CKPTSYNC_RESTORED\" "
                         f">{out}")
        return kit.read(out).decode()

    def aside(self, kind):
        """path -> hash of what was moved out of sight."""
        found = {}
        for folder in glob.glob(f"{self.folder}/.ckptsync-{kind}-*"):
            found.update(kit.tree(folder))
        return found

    def newest(self):
        fresh = self.path("fresh")
        shutil.rmtree(fresh, ignore_errors=True)
        self.restore(fresh)
        return kit.tree(fresh)

    def other_machine(self, name, seed):
        """Somebody else commits: another directory, without our memory."""
        other = self.path("other")
        kit.write(f"{other}/{name}", kit.checkpoint(seed))
        self.run_program("push", other, self.remote, environment={
            "CKPTSYNC_STATE_DIR": self.path("other-state")})

    def test_push_says_the_same_beside_an_agent(self):
        """What was durable before, by whomever, is known."""
        self.save("step-1.safetensors", 1)
        self.save("step-2.safetensors", 2)
        self.push()
        alone, lone = self.push(), self.push("--json").json
        self.assertIn("0 new, 2 known", alone.out)
        agent = self.start("agent", "--cloud", "none", self.folder,
                           self.remote)
        agent.event("known", 2)
        self.assertEqual(self.push().out, alone.out)
        self.assertEqual(self.push("--json").json, lone)
        self.save("step-3.safetensors", 3)
        agent.event("durable")
        self.assertIn("0 new, 3 known", self.push().out)
        done = self.push("--json").json
        self.assertEqual({each["state"] for each in done["checkpoints"]},
                         {"known"})
        self.assertEqual(done["new_bytes"], 0)
        # What is gone is not spoken of.
        os.unlink(f"{self.folder}/step-1.safetensors")
        self.assertIn("0 new, 2 known", self.push().out)

    def test_a_first_start(self):
        self.assertEqual(self.restored(), "")
        self.assertFalse(os.path.exists(self.folder))

    def test_the_same_disk(self):
        """Nothing is fetched, nothing is sent again."""
        self.save(NAME, 1)
        self.push()
        before = self.run_program("list", "--json", self.remote).json
        self.assertEqual(self.restored(), f"{self.folder}/{NAME}")
        after = self.run_program("list", "--json", self.remote).json
        self.assertEqual(before["checkpoints"], after["checkpoints"])

    def test_what_is_unknown_and_newer_is_kept_and_uploaded(self):
        self.save("step-1.safetensors", 1)
        self.push()
        digest = self.save("step-2.safetensors", 2)
        self.assertEqual(self.restored(),
                         f"{self.folder}/step-2.safetensors")
        self.assertEqual(self.newest(), {"step-2.safetensors": digest})

    def test_a_rollback_on_this_machine_is_what_counts(self):
        """Nobody else wrote: this machine's clock orders, not the steps."""
        self.save("step-9.safetensors", 9)
        self.run_once()
        os.unlink(f"{self.folder}/step-9.safetensors")
        time.sleep(0.02)
        digest = self.save("step-3.safetensors", 3)
        self.assertEqual(self.restored(),
                         f"{self.folder}/step-3.safetensors")
        self.assertEqual(self.newest(), {"step-3.safetensors": digest})

    def test_an_older_one_that_the_remote_does_not_know_stays_here(self):
        self.save("step-2.safetensors", 2)
        self.push()
        self.other_machine("step-9.safetensors", 9)
        old = self.save("step-3.safetensors", 3)
        self.assertEqual(self.restored(),
                         f"{self.folder}/step-9.safetensors")
        here = kit.tree(self.folder)
        self.assertEqual(here["step-3.safetensors"], old)
        self.assertEqual(self.newest(), {
            "step-9.safetensors": kit.sha256(kit.checkpoint(9))})

    def test_one_of_the_same_name_is_moved_never_replaced(self):
        self.save(NAME, 1)
        self.push()
        unknown = self.save(NAME, 2)
        old = time.time() - 3600
        os.utime(f"{self.folder}/{NAME}", (old, old))
        self.other_machine(NAME, 3)
        self.assertEqual(self.restored(), f"{self.folder}/{NAME}")
        self.assertEqual(kit.tree(self.folder)[NAME],
                         kit.sha256(kit.checkpoint(3)))
        self.assertEqual(self.aside("replaced"), {NAME: unknown})

    def test_a_torn_one_is_moved_out_of_sight(self):
        self.save("step-1.safetensors", 1)
        self.push()
        torn = kit.checkpoint(2)[:700000]
        kit.write(f"{self.folder}/step-2.safetensors", torn)
        done = self.run_once("--log-format", "json")
        self.assertIn("step-2.safetensors", done.err)
        self.assertEqual(self.aside("torn"),
                         {"step-2.safetensors": kit.sha256(torn)})
        self.assertFalse(os.path.exists(f"{self.folder}/step-2.safetensors"))
        self.assertEqual(self.restored(),
                         f"{self.folder}/step-1.safetensors")

    def as_nobody(self):
        """Root can read everything: go on as a user of no rights."""
        if os.geteuid() != 0:
            return {}
        user = 54321
        os.makedirs(self.folder, exist_ok=True)
        os.makedirs(self.path("state"), exist_ok=True)
        os.makedirs(self.path("remote"), exist_ok=True)
        for where, folders, files in os.walk(self.scratch):
            for path in [where] + [os.path.join(where, name)
                                   for name in files]:
                os.chown(path, user, user)
        return {"user": user, "group": user, "extra_groups": []}

    def test_one_that_cannot_be_read_is_left_and_said(self):
        if self.on_s3:
            self.skipTest("changes the user")
        self.save("step-1.safetensors", 1)
        self.save("step-2.safetensors", 2)
        closed = f"{self.folder}/step-2.safetensors"
        os.chmod(closed, 0)
        user = self.as_nobody()
        done = self.push(expect=6, **user)
        self.assertIn("step-2.safetensors", done.err)
        self.assertIn("Permission denied", done.err)
        done = self.run_once(**user)
        self.assertIn("step-2.safetensors", done.err)
        self.assertIn("warning", done.err)
        self.assertTrue(os.path.exists(closed))
        self.assertEqual(self.aside("torn"), {})
        agent = self.start("agent", "--cloud", "none", self.folder,
                           self.remote, **user)
        agent.event("waiting")
        done = self.push("--json", expect=6, **user)
        self.assertFalse(done.json["durable"])
        self.assertIn("Permission denied", done.err)
        os.chmod(closed, 0o600)
        agent.event("durable")
        self.assertIn("all durable", self.push(**user).out)

    def test_a_folder_that_cannot_be_read_is_said(self):
        if self.on_s3:
            self.skipTest("changes the user")
        self.save("step-1.safetensors", 1)
        self.save("checkpoint-2/model.safetensors", 2)
        user = self.as_nobody()
        os.chmod(f"{self.folder}/checkpoint-2", 0)
        done = self.push(expect=6, **user)
        self.assertIn("checkpoint-2", done.err)
        os.chmod(f"{self.folder}/checkpoint-2", 0o700)
        self.push(**user)

    def test_one_that_is_being_written_is_left(self):
        self.save("step-1.safetensors", 1)
        self.push()
        path = f"{self.folder}/step-2.safetensors"
        with open(path, "wb") as f:
            f.write(kit.checkpoint(2)[:700000])
            f.flush()
            self.run_once()
            self.assertTrue(os.path.exists(path))
        self.assertEqual(self.aside("torn"), {})

    def test_a_leftover_that_misleads_nobody_stays(self):
        """An older half of a save, behind a newer whole one."""
        kit.write(f"{self.folder}/step-1.safetensors",
                  kit.checkpoint(1)[:700000])
        self.save("step-2.safetensors", 2)
        self.assertEqual(self.restored(),
                         f"{self.folder}/step-2.safetensors")
        self.assertEqual(self.aside("torn"), {})
        self.assertTrue(os.path.exists(f"{self.folder}/step-1.safetensors"))

    def test_an_older_checkpoint_and_its_pointer(self):
        """--checkpoint: the pointer leads to what was asked for."""
        link = os.path.join(self.folder, "last.safetensors")
        for step in (1, 2):
            self.save(f"step-{step}.safetensors", step)
            if os.path.lexists(link):
                os.unlink(link)
            os.symlink(f"step-{step}.safetensors", link)
            self.push()
        fresh = self.path("another", "checkpoints")
        told = self.restored("--checkpoint", "step-1.safetensors",
                             folder=fresh)
        self.assertEqual(told, f"{fresh}/step-1.safetensors")
        self.assertEqual(os.readlink(f"{fresh}/last.safetensors"),
                         "step-1.safetensors")

    def test_a_supervisor_that_is_killed_alone(self):
        """The trainer goes on; the agent ends after it, and all is durable."""
        enough = self.path("enough")
        life = self.start(
            "run", "--cloud", "none", self.folder, self.remote, "--", "sh",
            "-c", f"while [ ! -e {enough} ]; do sleep 0.05; done; mv "
            f"{self.path('second')} {self.folder}/step-2.safetensors")
        life.event("trainer_started")
        self.save("step-1.safetensors", 1)
        life.event("durable")
        life.signal(signal.SIGKILL)
        life.child.wait()
        limit = time.monotonic() + kit.PATIENCE
        while not life.events("supervisor_gone"):
            self.assertLess(time.monotonic(), limit, str(life))
            time.sleep(0.02)
        kit.write(self.path("second"), kit.checkpoint(2))
        kit.write(enough, "")
        while kit.marked(self.mark):
            self.assertLess(time.monotonic(), limit, str(life))
            time.sleep(0.02)
        self.assertEqual(len(life.events("durable")), 2, str(life))
        self.assertTrue(life.events("all_durable"), str(life))

    def test_a_torn_one_beside_an_agent_is_left_alone(self):
        kit.write(f"{self.folder}/step-2.safetensors",
                  kit.checkpoint(2)[:700000])
        self.push()
        self.assertTrue(os.path.exists(f"{self.folder}/step-2.safetensors"))

    def test_a_newer_one_from_another_machine_is_brought(self):
        self.save("step-1.safetensors", 1)
        self.push()
        self.other_machine("step-5.safetensors", 5)
        self.assertEqual(self.restored(),
                         f"{self.folder}/step-5.safetensors")

    def test_a_push_of_what_is_behind_is_what_the_user_asked_for(self):
        self.other_machine("step-9.safetensors", 9)
        digest = self.save("step-3.safetensors", 3)
        self.push()
        self.assertEqual(self.newest(), {"step-3.safetensors": digest})
        listed = self.run_program("list", "--json", self.remote).json
        self.assertIn("step-9.safetensors",
                      [each["name"] for each in listed["checkpoints"]])

    def test_a_remote_that_is_damaged_starts_no_trainer(self):
        self.save(NAME, 1)
        self.push()
        shutil.rmtree(self.folder)
        for where, _, names in os.walk(self.remote_folder()):
            if "/chunks/" in where:
                for name in names:
                    kit.write(os.path.join(where, name), "x")
        done = self.run_once(command=("touch", self.path("started")),
                             expect=4)
        self.assertFalse(os.path.exists(self.path("started")))
        self.assertIn("--no-restore", done.err)


class Answers(kit.Case):
    def agent(self):
        life = self.start("agent", self.folder, self.remote)
        life.event("began")
        return life

    def ask(self, line):
        path, = glob.glob(self.path("runtime", "*.sock"))
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(30)
            link.connect(path)
            link.sendall(line)
            answer = b""
            while True:
                more = link.recv(65536)
                if not more:
                    break
                answer += more
        return [json.loads(each) for each in answer.splitlines()]

    def test_hello(self):
        self.agent()
        said, = self.ask(b'{"request":"hello"}\n')
        self.assertEqual((said["event"], said["class"]), ("end", 0))
        self.assertEqual(said["remote"], self.remote)
        self.assertEqual(said["phase"], "running")

    def test_a_push(self):
        self.agent()
        self.save(NAME, 1)
        said = self.ask(json.dumps({"request": "push",
                                    "remote": self.remote}).encode() + b"\n")
        self.assertEqual(said[-1]["event"], "end")
        self.assertEqual(said[-1]["class"], 0)

    def test_what_is_not_a_request(self):
        life = self.agent()
        for line in (b"\n", b"hello\n", b"[]\n", b"{}\n", b'{"request":3}\n',
                     b'{"request":"fly"}\n', b'{"a":' * 5000 + b"\n",
                     b"x" * 100000, b'{"request":"push"}\n',
                     b'{"request":"push","remote":"s3://other/run"}\n'):
            try:
                said = self.ask(line)
            except (ConnectionResetError, BrokenPipeError):
                continue
            self.assertEqual(said[-1]["event"], "end", line[:50])
            self.assertEqual(said[-1]["class"], 2, line[:50])
        self.assertIsNone(life.child.poll())

    def test_who_says_nothing_does_not_keep_others_out(self):
        self.agent()
        path, = glob.glob(self.path("runtime", "*.sock"))
        idle = []
        for _ in range(5):
            link = socket.socket(socket.AF_UNIX)
            link.connect(path)
            idle.append(link)
        self.assertEqual(self.ask(b'{"request":"hello"}\n')[-1]["class"], 0)
        for link in idle:
            link.close()

    def test_a_second_agent_names_the_first(self):
        life = self.agent()
        done = self.run_program("agent", self.folder, self.remote, expect=1)
        self.assertIn(f"process {life.child.pid}", done.err)
        self.assertIn(self.remote, done.err)

    def test_a_run_waits_for_a_push_to_end(self):
        self.save(NAME, 1, size=8 << 20)
        push = self.start("push", "--limit-rate", "4MiB", self.folder,
                          self.remote)
        push.event("complete")
        done = self.run_program("run", self.folder, self.remote, "--",
                                "true")
        self.assertEqual(push.wait(), 0, str(push))
        self.assertIn("waiting for a push", done.err)
        self.assertNotIn("already", done.err.replace("durable already", ""))

    def test_a_push_for_another_remote_is_refused(self):
        self.agent()
        done = self.run_program("push", self.folder,
                                "file://" + self.path("elsewhere"), expect=2)
        self.assertIn("another remote", done.err)

    def test_an_agent_that_is_told_to_end_ends_flushed(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            life = self.agent()
            digest = self.save(NAME, number)
            life.signal(number)
            self.assertEqual(life.wait(), 0, str(life))
            fresh = self.path(f"fresh-{number}")
            self.restore(fresh)
            self.assertEqual(kit.tree(fresh), {NAME: digest})


if __name__ == "__main__":
    kit.main()
