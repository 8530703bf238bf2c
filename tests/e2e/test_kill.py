#!/usr/bin/python3
"""Real training, murdered at random moments, ends as if nothing had happened.

    CKPTSYNC_WAYS     of these ways alone (commas between them)
    CKPTSYNC_ROUNDS   how many trainings over all four ways in turn; on S3 a
                      fifth of them
    CKPTSYNC_SEED     the same seed makes the same plan (not the same timing)

A round is one training.  It is killed two or three times: everything at once
(trainer, agent, supervisor), or the agent alone; while it saves, right after
something was durable, while it restores, or at any moment.  Then it goes on
with `ckptsync run` again, on the same disk (where a half-written file may lie)
or on an empty one.  After every murder a fresh folder is restored, and every
checkpoint in it must be one that the trainer journalled, whole, and none older
than what had been reported durable.
"""
import os
import random
import shutil
import subprocess
import time

import kit
import journal
import remote

ALL_WAYS = ("in-place", "hugging-face", "rename", "lightning")
WAYS = os.environ.get("CKPTSYNC_WAYS", ",".join(ALL_WAYS)).split(",")
ROUNDS = int(os.environ.get("CKPTSYNC_ROUNDS", "10"))
STEPS, EVERY, WIDTH = 240, 12, 512
TRAIN = os.path.join(kit.TRAINERS, "train")
SIZES = ["--steps", str(STEPS), "--every", str(EVERY), "--width", str(WIDTH)]
MOMENTS = ("in a save", "after durable", "early", "any")
KEPT = "results.csv"


def identifier(text):
    """"3-17" as numbers, so that later is greater."""
    return tuple(int(part) for part in text.split("-"))


class Kill(kit.Case):
    fingerprint = None

    @classmethod
    def setUpClass(cls):
        """The training that nobody disturbs."""
        import tempfile
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                [TRAIN, "in-place", scratch + "/folder", scratch + "/journal",
                 *SIZES], stdout=subprocess.PIPE, check=True, text=True)
        cls.fingerprint = done.stdout.split()[-1]

    def test_rounds(self):
        for number in range(-(-ROUNDS // 5) if self.on_s3 else ROUNDS):
            way = ALL_WAYS[number % len(ALL_WAYS)]
            if way not in WAYS:
                continue
            with self.subTest(round=number, way=way):
                Round(self, number, way).run()


class Round:
    def __init__(self, case, number, way):
        self.case = case
        self.way = way
        self.random = random.Random(f"{kit.SEED}/{way}/{number}")
        self.folder = case.path(f"disk-{number}", "checkpoints")
        self.journal = case.path(f"journal-{number}")
        self.remote = case.new_remote(f"remote-{number}")
        self.number = number
        self.durable = []       # ids, as the log reported them
        self.kills = self.random.choice((2, 2, 3))
        # Chunks that stay can be compared with the log; chunks that go may
        # reveal that one was needed.
        self.deletes = self.random.random() < 0.3
        self.story = []
        self.floor = 0          # the step that the last probe gave back
        self.starts = 0         # lives of the trainer that were looked at

    def say(self, text):
        self.story.append(text)

    def run(self):
        try:
            while self.live():
                pass
        except AssertionError as failure:
            raise AssertionError(
                f"round {self.number} ({self.way}): "
                + "; ".join(self.story) + f"\n{failure}") from None
        print(f"round {self.number} ({self.way}): " + "; ".join(self.story),
              flush=True)

    def live(self):
        """One life; true when another must follow."""
        options = ["--delete-delay", "0s"] if self.deletes else []
        life = self.case.start("run", *options, self.folder, self.remote, "--",
                               TRAIN, self.way, self.folder, self.journal,
                               *SIZES)
        while self.kills:
            self.kills -= 1
            if not self.wait_for_a_moment(life):
                break
            if self.random.random() < 0.25:
                self.kill_agent(life)
                continue
            kit.murder(self.case.mark, self.random)
            life.wait()
            self.say("killed everything")
            self.remember(life)
            self.check()
            self.change_disk()
            return True
        self.end(life)
        return False

    def wait_for_a_moment(self, life):
        """False when the training ended before it came."""
        kind = self.random.choice(MOMENTS)
        pause = 0
        if kind == "early":
            pause = self.random.uniform(0, 2)
        elif kind == "any":
            pause = self.random.uniform(1, 6)
        else:
            count = self.random.randint(1, 6)
            wait = (lambda: len(self.events("save")) >= count) \
                if kind == "in a save" \
                else (lambda: len(life.events("durable")) >= count)
            count += len(self.events("save")) if kind == "in a save" else 0
            while not wait():
                if life.child.poll() is not None:
                    return False
                time.sleep(0.001)
            pause = self.random.uniform(0, 0.03)
        self.say(f"{kind} +{pause:.3f}")
        limit = time.monotonic() + pause
        while time.monotonic() < limit:
            if life.child.poll() is not None:
                return False
            time.sleep(min(0.01, max(0, limit - time.monotonic())))
        return life.child.poll() is None

    def events(self, kind):
        return [event for event in journal.read(self.journal)
                if event["event"] == kind]

    def kill_agent(self, life):
        """The agent alone: the training must go on."""
        agents = [pid for pid in kit.marked(self.case.mark)
                  if pid != life.child.pid and not self.is_trainer(pid)]
        for pid in agents:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        self.say(f"killed {len(agents)} agent")
        self.case.assertIsNone(life.child.poll(), str(life))

    def is_trainer(self, pid):
        try:
            words = kit.read(f"/proc/{pid}/cmdline").split(b"\0")
            return TRAIN.encode() in words[:2]
        except OSError:
            return False

    def remember(self, life):
        self.durable += [event["id"] for event in life.events("durable")]
        starts = [event["step"] for event in self.events("start")]
        for step in starts[self.starts:]:
            self.case.assertGreaterEqual(step, self.floor,
                                         "went on from something older")
        self.starts = len(starts)

    def change_disk(self):
        if self.random.random() < 0.5:
            self.say("same disk")
            return
        self.say("empty disk")
        shutil.rmtree(os.path.dirname(self.folder), ignore_errors=True)

    def saves(self):
        """(name, files) -> step, of all that was ever journalled."""
        return {(event["name"], tuple(sorted(event["files"].items()))):
                event["step"] for event in self.events("save")}

    def checkpoints(self, folder):
        """name -> files, of what lies in a restored folder."""
        found = {}
        for path, digest in kit.tree(folder).items():
            if digest == "folder":
                continue
            top = path.split("/")[0]
            if top == KEPT or top == "runs" or digest.startswith("link "):
                self.check_beside(folder, path, digest)
                continue
            found.setdefault(top, {})[path] = digest
        return found

    def check_beside(self, folder, path, digest):
        if digest.startswith("link "):
            self.case.assertTrue(os.path.exists(os.path.join(folder, path)),
                                 f"{path} leads nowhere")
        elif path == KEPT:
            data = kit.read(os.path.join(folder, path))
            written = [kit.read(os.path.join(self.journal, name, KEPT))
                       for name in os.listdir(self.journal)
                       if os.path.exists(os.path.join(self.journal, name,
                                                      KEPT))]
            self.case.assertTrue(any(each.startswith(data)
                                     for each in written),
                                 f"{path} is nothing that was written")

    def steps(self, folder):
        """name -> step of each checkpoint; fails when one is torn."""
        saves = self.saves()
        steps = {}
        for name, files in self.checkpoints(folder).items():
            key = (name, tuple(sorted(files.items())))
            self.case.assertIn(key, saves, f"{name} is torn in {folder}")
            steps[name] = saves[key]
        return steps

    def check(self):
        """Restore into empty folders and compare with the journal."""
        probe = self.case.path("probe")
        listed = self.case.run_program("list", "--json", self.remote,
                                       expect=None)
        if not self.durable and listed.status == 3:
            self.say("nothing durable")
            return
        self.case.assertEqual(listed.status, 0, str(listed))
        ids = [each["id"] for each in listed.json["checkpoints"]]
        for every in (False, True):
            shutil.rmtree(probe, ignore_errors=True)
            words = ["restore", self.remote, probe]
            self.case.run_program(*words, *(["--all"] if every else []))
            steps = self.steps(probe)
            self.case.assertTrue(steps, "nothing came back")
            if not every:
                resumed = max(steps.values())
        if self.durable:
            self.case.assertGreaterEqual(
                max(map(identifier, ids)), max(map(identifier, self.durable)),
                "older than what was reported durable")
        self.check_floor(resumed)
        self.floor = resumed
        self.say(f"{len(self.durable)} durable, step {resumed} back")

    def check_floor(self, resumed):
        """What was durable, read from the objects by another reader."""
        if self.case.on_s3 or self.deletes:
            return
        there = remote.Remote(self.remote)
        saves = self.saves()
        for each in self.durable:
            manifest = there.by_id(each)
            files = {path: kit.sha256(data) for path, data
                     in there.files(manifest).items()}
            key = (manifest["name"], tuple(sorted(files.items())))
            self.case.assertIn(key, saves, f"{each} is torn in the remote")
            if manifest["role"] == "resume":
                self.case.assertGreaterEqual(resumed, saves[key])

    def end(self, life):
        self.case.assertEqual(life.wait(), 0, str(life))
        self.remember(life)
        self.check()
        last = self.events("end")[-1]
        self.case.assertEqual(last["step"], STEPS)
        self.case.assertEqual(last["fingerprint"], self.case.fingerprint,
                              "the final weights differ")
        starts = [event["step"] for event in self.events("start")]
        self.say(f"started from {starts}, weights identical")


if __name__ == "__main__":
    kit.main()
