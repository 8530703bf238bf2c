#!/usr/bin/python3
"""contrib/restore-without-ckptsync gives the same bytes as ckptsync."""
import os
import subprocess

import kit

SCRIPT = os.path.join(kit.TREE, "contrib", "restore-without-ckptsync")


class Without(kit.Case):
    def script(self, *words, status=0):
        done = subprocess.run([SCRIPT, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              errors="replace", env=self.environment)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def facts(self, folder):
        """Hashes, modes and times."""
        found = {}
        for path, digest in kit.tree(folder).items():
            status = os.lstat(os.path.join(folder, path))
            found[path] = (digest,) if digest.startswith("link ") else (
                digest, status.st_mode, status.st_mtime_ns, status.st_nlink
                if digest != "folder" else 0)
        return found

    def prepare(self):
        """A directory with everything that a checkpoint can hold."""
        for step in (500, 1000):
            top = f"{self.folder}/checkpoint-{step}"
            kit.write(top + "/model.safetensors",
                      kit.checkpoint(step, size=20 << 20))
            kit.write(top + "/optimizer.pt.json", "{}")
            kit.write(top + "/sub folder/caf\u00e9 \\ \"q\" $(x)", "odd\n")
            kit.write(os.path.join(top, os.fsdecode(b"latin\xe9")), b"\xe9")
            kit.write(top + "/empty", "")
            os.symlink("model.safetensors", top + "/alias")
            os.symlink("../model.safetensors", top + "/sub folder/up")
            os.link(top + "/empty", top + "/same")
            os.chmod(top + "/optimizer.pt.json", 0o640)
            kit.write(top + "/trainer_state.json",
                      '{"global_step": %d}' % step)
            os.utime(top + "/empty", ns=(5, 1234567890123456789))
            self.push()
        kit.write(self.folder + "/latest", "checkpoint-1000")
        self.save("best.safetensors", 1)
        self.push()

    def test_the_resume_point_and_a_chosen_one(self):
        self.prepare()
        by_script, by_program = self.path("script"), self.path("program")
        self.script(self.remote, by_script)
        self.restore(by_program)
        self.assertEqual(self.facts(by_script), self.facts(by_program))
        original = self.facts(self.folder)
        for path, facts in self.facts(by_script).items():
            if path != "checkpoint-1000":
                self.assertEqual(facts, original[path], path)
        for name in ("checkpoint-500", "best.safetensors"):
            one = self.path("one-" + name)
            self.script(self.remote, one, name)
            for path, facts in self.facts(one).items():
                self.assertEqual(facts[0], original[path][0], path)

    def test_what_a_new_term_adopted(self):
        """A machine that only just started: its open.json is the truth."""
        self.prepare()
        agent = self.start("agent", self.path("other"), self.remote)
        fresh = self.path("fresh")
        agent.until("the resume point from the script", lambda: subprocess.run(
            [SCRIPT, self.remote, fresh], env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False).returncode == 0)
        self.assertIn("checkpoint-1000/model.safetensors", kit.tree(fresh))

    def test_damage_is_seen(self):
        folder = self.remote_folder()
        self.save("step-1.safetensors", 1)
        self.push()
        for where, _, names in os.walk(folder):
            for name in names:
                if "/chunks/" in where and len(name) == 64:
                    with open(os.path.join(where, name), "r+b") as f:
                        f.write(b"?")
        self.assertIn("damaged", self.script(self.remote, self.path("fresh"),
                                             status=1))

    def test_nothing_there(self):
        if not self.on_s3:
            os.mkdir(self.path("remote"))
        self.script(self.remote, self.path("fresh"), status=1)


if __name__ == "__main__":
    kit.main()
