#!/usr/bin/python3
"""Saves every 2 s, in place, over a link that needs 5 s for each."""
import datetime
import os
import shutil
import sys
import time

import kit

SIZE = 20 << 20
RATE = "4MiB"
TRAINER = """
import sys, time
sys.path[:0] = [{kit!r}]
import kit
for step in range({saves}):
    began = time.monotonic()
    data = kit.checkpoint(step, size={size})
    with open({journal!r}, "a") as f:
        f.write(kit.sha256(data) + "\\n")
    kit.write({folder!r} + "/last.safetensors", data)
    time.sleep(max(0, began + 2 - time.monotonic()))
"""


class Outrun(kit.Case):
    def run_over_the_link(self, *options):
        saves = int(os.environ.get("CKPTSYNC_SAVES", "24"))
        script, journal = self.path("train.py"), self.path("journal")
        kit.write(script, TRAINER.format(
            kit=kit.HERE, saves=saves, size=SIZE, journal=journal,
            folder=self.folder))
        life = self.start("run", "--limit-rate", RATE, "--keep-all", *options,
                          self.folder, self.remote, "--", sys.executable,
                          script)
        self.assertEqual(life.wait(600), 0, str(life))
        written = kit.read(journal).decode().split()
        durable = life.events("durable")
        times = [datetime.datetime.fromisoformat(
            event["time"].replace("Z", "+00:00")) for event in durable]
        gaps = [(b - a).total_seconds() for a, b in zip(times, times[1:])]
        self.assertGreaterEqual(len(durable), 2, str(life))
        self.assertLessEqual(max(gaps), 15, f"{gaps}\n{life}")
        for event in durable:
            fresh = self.path("fresh")
            self.restore(fresh, "--checkpoint", event["id"])
            self.assertIn(kit.tree(fresh)["last.safetensors"], written,
                          f"{event} is torn")
            shutil.rmtree(fresh)
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(kit.tree(fresh)["last.safetensors"], written[-1],
                         "the last save is not durable")
        self.assertEqual(kit.tree(self.folder), {
            "last.safetensors": written[-1]}, "something was left behind")

    def test_something_is_durable_all_the_time(self):
        self.run_over_the_link()


if __name__ == "__main__":
    kit.main()
