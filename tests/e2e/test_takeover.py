#!/usr/bin/python3
"""Agents that follow each other, and what stays of a run."""
import os
import re
import shutil
import sys
import time

import kit


class TakeOver(kit.Case):
    def test_a_newer_agent_supersedes_an_older_one(self):
        old = self.start("agent", self.folder, self.remote)
        self.save("step-1.safetensors", 1)
        old.event("durable")
        newer = self.path("newer")
        new = self.start("agent", newer, self.remote)
        kit.write(newer + "/step-2.safetensors", kit.checkpoint(2))
        new.event("durable")
        self.save("step-3.safetensors", 3)
        self.assertEqual(old.wait(), 5, str(old))
        self.assertIn(os.uname().nodename, kit.read(old.log).decode(),
                      "the log does not say who it was")
        self.assertIsNone(new.child.poll())
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(list(kit.tree(fresh)), ["step-2.safetensors"])

    def superseded_run(self, *options):
        script = ("while [ ! -e {0}/go ]; do sleep 0.05; done; sleep 1; "
                  "[ -e {0}/stay ] || exit 0; while :; do sleep 0.05; done"
                  ).format(self.scratch)
        old = self.start("run", *options, self.folder, self.remote, "--",
                         "sh", "-c", script)
        self.save("step-1.safetensors", 1)
        old.event("durable")
        newer = self.path("newer")
        new = self.start("agent", newer, self.remote)
        kit.write(newer + "/step-2.safetensors", kit.checkpoint(2))
        new.event("durable")
        self.save("step-3.safetensors", 3)
        return old

    def test_a_superseded_run_lets_the_trainer_go_on(self):
        old = self.superseded_run()
        old.event("superseded")
        self.assertIsNone(old.child.poll())
        kit.write(self.path("go"), "")
        self.assertEqual(old.wait(), 5, str(old))

    def test_a_superseded_run_stops_the_trainer_if_asked(self):
        kit.write(self.path("stay"), "")
        kit.write(self.path("go"), "")
        old = self.superseded_run("--on-superseded", "stop")
        self.assertEqual(old.wait(), 5, str(old))

    def test_a_trainer_that_starts_again_from_zero(self):
        """The remote holds step 1000; the 1000 stays until it is passed."""
        digest = self.save("step-1000.safetensors", 1000)
        self.push()
        zero = self.path("zero")
        life = self.start("run", "--no-restore", "--keep", "2", zero,
                          self.remote, "--", "sh", "-c",
                          f"while [ ! -e {self.scratch}/go ]; do "
                          "sleep 0.05; done")
        life.event("trainer_started")
        for step in range(5):
            kit.write(f"{zero}/step-{step}.safetensors", kit.checkpoint(step))
            life.event("durable", count=step + 1)
            if step:
                os.unlink(f"{zero}/step-{step - 1}.safetensors")
        kit.write(self.path("go"), "")
        self.assertEqual(life.wait(), 0, str(life))
        listed = self.run_program("list", "--json", self.remote).json
        names = [each["name"] for each in listed["checkpoints"]]
        self.assertIn("step-1000.safetensors", names)
        fresh = self.path("fresh")
        self.restore(fresh, "--checkpoint", "step-1000.safetensors")
        self.assertEqual(kit.tree(fresh)["step-1000.safetensors"], digest)

    def test_an_empty_machine_never_makes_the_remote_forget(self):
        digest = self.save("step-5.safetensors", 5)
        self.push()
        shutil.rmtree(self.folder)
        for _ in range(3):
            os.makedirs(self.folder, exist_ok=True)
            self.run_program("run", "--no-restore", "--delete-delay", "0s",
                             self.folder, self.remote, "--", "true")
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(kit.tree(fresh)["step-5.safetensors"], digest)

    def test_retention_after_many_commits(self):
        """200 commits leave exactly what --keep says, objects included."""
        folder = self.remote_folder()
        commits = int(os.environ.get("CKPTSYNC_COMMITS", "200"))
        life = self.start("agent", "--keep", "3", "--delete-delay", "0s",
                          self.folder, self.remote)
        for step in range(1, commits + 1):
            self.save(f"step-{step}.safetensors", step, size=1 << 16)
            life.event("durable", count=step)
            if step > 2:
                os.unlink(f"{self.folder}/step-{step - 2}.safetensors")
        wanted = [f"step-{step}.safetensors"
                  for step in range(commits, commits - 3, -1)]
        listed = self.run_program("list", "--json", self.remote).json
        self.assertEqual([each["name"] for each in listed["checkpoints"]],
                         wanted)
        life.until("only three manifests", lambda: len(
            self.objects(folder, r"/checkpoints/")) == 3)
        life.until("only their chunks", lambda: len(
            self.objects(folder, r"/chunks/")) <= 3 * 4)
        fresh = self.path("fresh")
        self.restore(fresh, "--all")
        self.assertEqual(kit.tree(fresh), {
            name: kit.sha256(kit.checkpoint(commits - i, size=1 << 16))
            for i, name in enumerate(wanted)})

    def objects(self, folder, pattern):
        found = []
        for where, _, names in os.walk(folder):
            found += [os.path.join(where, name) for name in names
                      if re.search(pattern, os.path.join(where, name))]
        return found

    def test_keep_all(self):
        life = self.start("agent", "--keep-all", "--delete-delay", "0s",
                          self.folder, self.remote)
        for step in range(1, 7):
            self.save("last.safetensors", step, size=1 << 16)
            life.event("durable", count=step)
        listed = self.run_program("list", "--json", self.remote).json
        self.assertEqual(len(listed["checkpoints"]), 6)
        for i, each in enumerate(listed["checkpoints"]):
            fresh = self.path(f"fresh-{i}")
            self.restore(fresh, "--checkpoint", each["id"])
            self.assertEqual(
                kit.tree(fresh)["last.safetensors"],
                kit.sha256(kit.checkpoint(6 - i, size=1 << 16)))

    def test_identical_content_is_no_commit(self):
        data = kit.checkpoint(1)
        self.save("last.safetensors", 1)
        self.push()
        before = self.run_program("list", "--json", self.remote).json
        time.sleep(0.01)
        kit.write(self.folder + "/last.safetensors", data)
        self.push()
        after = self.run_program("list", "--json", self.remote).json
        self.assertEqual(before["checkpoints"], after["checkpoints"])

    def test_a_push_continues_what_another_push_sent(self):
        """A cut upload is not sent again by the next term."""
        size = 96 << 20
        self.save("step-1.safetensors", 1, size=size, count=12)
        first = self.start("push", "--limit-rate", "24MiB", self.folder,
                           self.remote)
        folder = self.remote_folder()
        first.until("some chunks", lambda: len(
            self.objects(folder, r"/chunks/.*[0-9a-f]{64}$")) >= 3)
        kit.murder(self.mark)
        there = len(self.objects(folder, r"/chunks/.*[0-9a-f]{64}$"))
        self.assertLess(there, 12)
        done = self.push("--json").json
        self.assertLessEqual(done["new_bytes"],
                             size - (there - 1) * (8 << 20) + (1 << 20))
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(kit.tree(fresh), kit.tree(self.folder))


if __name__ == "__main__":
    kit.main()
