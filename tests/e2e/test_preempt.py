#!/usr/bin/python3
"""Real training on machines that are told to go, and then are gone.

    CKPTSYNC_PREEMPT_ROUNDS   how many (5)
    CKPTSYNC_SEED             the same seed makes the same plan

A round is one training with two notices at random moments, of 2 to 8 s.  At
the deadline everything is killed.  Then a fresh folder is restored, and the
training goes on in it.  Nothing comes back torn; what the trainer had saved on
notice with a second to go is what comes back; the final weights are those of a
training that nobody disturbed.
"""
import os
import shutil
import subprocess
import tempfile
import time

import kit
import test_kill

ROUNDS = int(os.environ.get("CKPTSYNC_PREEMPT_ROUNDS", "5"))
SPARE = 1.0             # seconds in which anything can be sent here


class Preempt(kit.Case):
    fingerprint = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                [test_kill.TRAIN, "in-place", scratch + "/folder",
                 scratch + "/journal", *test_kill.SIZES],
                stdout=subprocess.PIPE, check=True, text=True)
        cls.fingerprint = done.stdout.split()[-1]

    def test_rounds(self):
        for number in range(ROUNDS):
            way = test_kill.ALL_WAYS[number % len(test_kill.ALL_WAYS)]
            with self.subTest(round=number, way=way):
                Round(self, number, way).run()


class Round(test_kill.Round):
    def __init__(self, case, number, way):
        super().__init__(case, f"preempt-{number}", way)
        self.kills = 2

    def live(self):
        life = self.case.start(
            "run", "--cloud", "none", "--save-signal", "USR1", self.folder,
            self.remote, "--", test_kill.TRAIN, self.way, self.folder,
            self.journal, *test_kill.SIZES, "--save-on", "USR1")
        if self.kills:
            self.kills -= 1
            if self.notice(life):
                return True
        self.end(life)
        return False

    def notice(self, life):
        """False when the training was over before."""
        limit = time.monotonic() + self.random.uniform(1, 6)
        while time.monotonic() < limit or not self.started(life):
            if life.child.poll() is not None:
                return False
            time.sleep(0.01)
        window = self.random.uniform(2, 8)
        deadline = time.monotonic() + window
        told = self.case.run_program("notice", "--in", f"{window:.3f}s",
                                     self.folder, expect=None)
        if told.status == 7:
            return False
        self.case.assertEqual(told.status, 0, str(told))
        while time.monotonic() < deadline - SPARE:
            time.sleep(0.01)
        saved = self.last_save()
        while time.monotonic() < deadline:
            time.sleep(0.01)
        kit.murder(self.case.mark, self.random)
        status = life.wait()
        self.say(f"{window:.1f} s, status {status}")
        self.case.assertIn(status, (75, -9), str(life))
        self.remember(life)
        self.check()
        # Who saves, saves whole: nothing that was there in time is lost.
        self.case.assertGreaterEqual(self.floor, saved, str(life))
        shutil.rmtree(os.path.dirname(self.folder), ignore_errors=True)
        return True

    def started(self, life):
        return life.events("trainer_started") and self.events("start")[-1:] \
            and len(self.events("start")) > self.starts

    def last_save(self):
        """The step of the newest save that had come to its end by now."""
        return max([event["step"] for event in self.events("saved")],
                   default=0)


if __name__ == "__main__":
    kit.main()
