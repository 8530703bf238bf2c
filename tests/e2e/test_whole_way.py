#!/usr/bin/python3
"""The commands once each, as the README shows them."""
import os
import sys

import kit

# A trainer of three saves.  It says what it was given.
TRAINER = """
import os, sys, time
sys.path[:0] = [{kit!r}]
import kit
folder = {folder!r}
print("arguments", sys.argv[1:])
print("restored", os.environ.get("CKPTSYNC_RESTORED"))
there = sorted(int(n[5:-12]) for n in os.listdir(folder)
               if n.endswith(".safetensors")) if os.path.isdir(folder) else []
first = there[-1] if there else 0
print("from", first, flush=True)
for step in range(first + 1, first + 4):
    kit.write(f"{{folder}}/step-{{step}}.safetensors", kit.checkpoint(step))
    time.sleep({pause})
"""


class WholeWay(kit.Case):
    def trainer(self, pause=0.3, folder=None):
        path = self.path("train.py")
        kit.write(path, TRAINER.format(kit=kit.HERE, pause=pause,
                                       folder=folder or self.folder))
        return [sys.executable, path]

    def test_run_restore_go_on(self):
        done = self.run_program("run", self.folder, self.remote, "--",
                                *self.trainer())
        self.assertIn("from 0", done.out)
        self.assertIn("restored \n", done.out + "\n")
        before = kit.tree(self.folder)
        self.assertEqual(len(before), 3)

        elsewhere = self.path("elsewhere")
        self.restore(elsewhere)
        self.assertEqual(kit.tree(elsewhere), {
            "step-3.safetensors": before["step-3.safetensors"]})

        done = self.run_program("run", self.remote, elsewhere, "--",
                                *self.trainer(folder=elsewhere))
        self.assertIn("from 3", done.out)
        self.assertIn(f"restored {elsewhere}/step-3.safetensors", done.out)
        self.assertEqual(kit.tree(elsewhere)["step-6.safetensors"],
                         kit.sha256(kit.checkpoint(6)))
        third = self.path("third")
        self.restore(third)
        self.assertEqual(kit.tree(third), {
            "step-6.safetensors": kit.sha256(kit.checkpoint(6))})

    def test_killed_and_restored(self):
        life = self.start("run", self.folder, self.remote, "--",
                          *self.trainer(pause=2))
        life.event("durable")
        kit.murder(self.mark)
        empty = self.path("empty")
        self.restore(empty)
        self.assertEqual(kit.tree(empty)["step-1.safetensors"],
                         kit.sha256(kit.checkpoint(1)))

    def test_resume_arguments(self):
        self.save("step-3.safetensors", 3)
        self.push()
        fresh = self.path("fresh")
        done = self.run_program(
            "run", "--resume-args", "--resume {}", fresh, self.remote, "--",
            *self.trainer(pause=0, folder=fresh), "at={restored}")
        path = f"{fresh}/step-3.safetensors"
        self.assertIn(f"arguments ['at={path}', '--resume', '{path}']",
                      done.out)

    def test_no_resume_arguments_at_a_first_start(self):
        done = self.run_program(
            "run", "--resume-args", "--resume {}", self.folder, self.remote,
            "--", *self.trainer(pause=0))
        self.assertIn("arguments []", done.out)

    def test_no_restore(self):
        self.save("step-3.safetensors", 3)
        self.push()
        fresh = self.path("fresh")
        done = self.run_program("run", "--no-restore", fresh, self.remote,
                                "--", *self.trainer(pause=0, folder=fresh))
        self.assertIn("from 0", done.out)

    def test_run_restores_a_chosen_checkpoint(self):
        for step in (3, 4):
            self.save(f"step-{step}.safetensors", step)
            self.push()
        fresh = self.path("fresh")
        done = self.run_program(
            "run", "--checkpoint", "step-3.safetensors", fresh, self.remote,
            "--", *self.trainer(pause=0, folder=fresh))
        self.assertIn("from 3", done.out)

    def test_places_from_the_environment(self):
        self.save("step-3.safetensors", 3)
        places = {"CKPTSYNC_DIR": self.folder, "CKPTSYNC_REMOTE": self.remote}
        self.run_program("push", environment=places)
        places["CKPTSYNC_DIR"] = self.path("fresh")
        self.run_program("restore", environment=places)
        self.assertEqual(list(kit.tree(self.path("fresh"))),
                         ["step-3.safetensors"])

    def test_list_and_show(self):
        for step in (3, 4):
            digest = self.save(f"step-{step}.safetensors", step)
            self.push()
        self.assertTrue(digest)
        listed = self.run_program("list", "--json", self.remote).json
        self.assertEqual([each["name"] for each in listed["checkpoints"]],
                         ["step-4.safetensors", "step-3.safetensors"])
        newest = listed["checkpoints"][0]
        self.assertEqual(newest["step"], 4)
        self.assertEqual(newest["role"], "resume")
        for what in (newest["id"], newest["name"]):
            shown = self.run_program("show", "--json", self.remote, what).json
            self.assertEqual(shown["name"], "step-4.safetensors")
        text = self.run_program("list", self.remote).out
        self.assertLess(text.index("step-4"), text.index("step-3"))
        text = self.run_program("show", self.remote).out
        self.assertIn("step-4.safetensors", text)

    def test_restore_a_chosen_one_and_all(self):
        hashes = {}
        for step in (3, 4):
            hashes[f"step-{step}.safetensors"] = self.save(
                f"step-{step}.safetensors", step)
            self.push()
        hashes["best.safetensors"] = self.save("best.safetensors", 3)
        kit.write(self.folder + "/results.csv", "1,2\n")
        hashes["results.csv"] = kit.sha256(b"1,2\n")
        self.push()
        one = self.path("one")
        self.restore(one, "--checkpoint", "step-3.safetensors")
        self.assertEqual(list(kit.tree(one)), ["step-3.safetensors"])
        best = self.path("best")
        self.restore(best, "--best")
        self.assertIn("best.safetensors", kit.tree(best))
        everything = self.path("everything")
        self.restore(everything, "--all")
        self.assertEqual(kit.tree(everything), hashes)
        some = self.path("some")
        self.restore(some, "--all", "--include", "step-*",
                     "--exclude", "step-3*")
        self.assertEqual(list(kit.tree(some)), ["step-4.safetensors"])

    def test_dry_run(self):
        self.save("step-3.safetensors", 3, size=2 << 20)
        self.push()
        fresh = self.path("fresh")
        plan = self.restore(fresh, "--dry-run", "--json").json
        self.assertGreaterEqual(plan["fetch_bytes"], 2 << 20)
        self.assertFalse(os.path.exists(fresh))

    def test_nothing_there_yet(self):
        fresh = self.path("fresh")
        os.mkdir(self.path("remote"))
        self.restore(fresh, expect=3)
        self.restore(fresh, "--if-exists")

    def test_if_empty(self):
        self.save("step-3.safetensors", 3)
        self.push()
        full, empty = self.path("full"), self.path("empty")
        kit.write(full + "/step-1.safetensors", kit.checkpoint(1))
        self.restore(full, "--if-empty")
        self.assertEqual(list(kit.tree(full)), ["step-1.safetensors"])
        self.restore(empty, "--if-empty")
        self.assertEqual(list(kit.tree(empty)), ["step-3.safetensors"])

    def test_restore_does_not_replace_what_the_remote_does_not_know(self):
        mine = self.save("last.safetensors", "mine")
        self.push()
        other = self.path("other")
        kit.write(other + "/last.safetensors", kit.checkpoint("other"))
        done = self.restore(other, expect=1)
        self.assertIn("last.safetensors", done.err)
        self.assertIn("--force", done.err)
        self.assertEqual(kit.tree(other)["last.safetensors"],
                         kit.sha256(kit.checkpoint("other")))
        self.restore(other, "--force")
        self.assertEqual(kit.tree(other)["last.safetensors"], mine)

    def test_push_beside_a_running_agent(self):
        agent = self.start("agent", self.folder, self.remote)
        digest = self.save("step-1.safetensors", 1)
        self.push()
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(kit.tree(fresh)["step-1.safetensors"], digest)
        self.assertIsNone(agent.child.poll(), str(agent))
        second = self.run_program("agent", self.folder, self.remote,
                                  expect=None)
        self.assertEqual(second.status, 1, str(second))

    def test_pointers_and_links_come_back(self):
        self.save("epoch=0-step=10.ckpt.safetensors", 1)
        self.save("epoch=0-step=20.ckpt.safetensors", 2)
        os.symlink("epoch=0-step=20.ckpt.safetensors",
                   self.folder + "/last.ckpt")
        self.push()
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(os.readlink(fresh + "/last.ckpt"),
                         "epoch=0-step=20.ckpt.safetensors")
        self.assertTrue(os.path.exists(fresh + "/last.ckpt"))


if __name__ == "__main__":
    kit.main()
