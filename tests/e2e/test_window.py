#!/usr/bin/python3
"""A notice on a wire of known speed: what can make it does, and nothing else.

The wire is a proxy in front of a real S3 server.  The test's clock is the
window: every checkpoint is so many windows long.
"""
import os
import subprocess
import sys
import time
import unittest
import urllib.parse

import kit
import s3

ENDPOINT = os.environ.get("AWS_ENDPOINT_URL") or \
    os.environ.get("AWS_ENDPOINT_URL_S3")
WINDOW = 10                     # seconds
RATE = 6 << 20                  # bytes a second
WHOLE = WINDOW * RATE
THROTTLE = os.path.join(kit.TREE, "tests", "servers", "throttle")


class Wire:
    """tests/servers/throttle in front of the server."""
    def __init__(self, case, rate):
        target = urllib.parse.urlsplit(ENDPOINT).netloc
        self.count = case.path("count")
        self.child = subprocess.Popen(
            [THROTTLE, target, str(rate), "--count", self.count],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        case.addCleanup(self.stop)
        self.url = "http://127.0.0.1:" + self.child.stdout.readline().strip()

    def stop(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()

    def passed(self):
        return int(kit.read(self.count))


@unittest.skipUnless(ENDPOINT, "needs an S3 server")
class Window(kit.Case):
    def setUp(self):
        super().setUp()
        self.wire = Wire(self, RATE)
        self.step = 0

    def agent(self, word, *words):
        agent = self.start(word, "--cloud", "none", "--endpoint-url",
                           self.wire.url, "--companions", "none",
                           "--no-environment", *words[:-1] if word == "run"
                           else words, self.folder, self.remote,
                           *words[-1] if word == "run" else ())
        return agent

    def put(self, windows):
        """Save a checkpoint that takes this many windows to send."""
        self.step += 1
        name = f"step-{self.step}.safetensors"
        self.save(name, f"{self.id()}{self.step}",
                  size=int(windows * WHOLE) & ~4095)
        return name

    def notice(self, agent):
        began = time.monotonic()
        self.run_program("notice", "--in", f"{WINDOW}s", "--reason", "test",
                         self.folder)
        return began + WINDOW

    def begins(self, agent, name, least=512 << 10):
        """Wait until some of `name` is on the wire."""
        before = self.wire.passed()
        agent.until("bytes on the wire",
                    lambda: self.wire.passed() > before + least)
        status = self.run_program("status", "--json", self.folder,
                                  expect=None).json["agents"][0]
        self.assertEqual(status["uploading"], name)

    def keys(self):
        """All keys of this run, asked of the server itself."""
        bucket, _, prefix = self.remote[len("s3://"):].partition("/")
        return s3.keys(ENDPOINT, bucket, prefix)

    def ends(self, agent, deadline, status):
        self.assertEqual(agent.wait(), status, str(agent))
        late = time.monotonic() - deadline
        self.assertTrue(late < 0, f"{late:.2f} s late: {agent}")
        self.assertTrue([key for key in self.keys()
                         if key.endswith("/close.json")])
        print(f"{self.id()}: {-late:.2f} s before the deadline", flush=True)

    def names(self):
        listed = self.run_program("list", "--json", self.remote)
        return [each["name"] for each in listed.json["checkpoints"]]

    def send(self, windows, status):
        agent = self.agent("agent")
        agent.event("began")
        name = self.put(windows)
        self.begins(agent, name)
        deadline = self.notice(agent)
        self.ends(agent, deadline, status)
        return agent, name

    def test_a_fifth_of_a_window(self):
        _, name = self.send(0.2, 0)
        self.assertEqual(self.names(), [name])

    def test_four_fifths_of_a_window(self):
        _, name = self.send(0.8, 0)
        self.assertEqual(self.names(), [name])

    def test_one_and_a_half_windows(self):
        """It is said, and no request is spent on it."""
        agent, name = self.send(1.5, 6)
        said = agent.events("cannot_make_it")
        self.assertEqual([each["checkpoint"] for each in said], [name])
        self.assertEqual(agent.events("not_durable")[0]["lost"], name)
        # What went before it was known, not the window's 60 MiB.
        self.assertLess(self.wire.passed(), 0.6 * WHOLE)

    def test_an_older_one_that_can_still_make_it(self):
        agent = self.agent("agent")
        agent.event("began")
        older = self.put(0.5)
        self.begins(agent, older)
        newer = self.put(1.3)
        agent.event("complete", 2)
        deadline = self.notice(agent)
        self.ends(agent, deadline, 6)
        self.assertEqual(self.names(), [older])
        self.assertEqual(agent.events("not_durable")[0]["lost"], newer)

    def test_the_last_save_of_the_trainer(self):
        """It saves when it is told; there is time for it."""
        script = self.path("train.py")
        kit.write(script, f"""
import json, os, signal, sys, time
sys.path[:0] = [{kit.HERE!r}]
import kit
def save(step, size):
    kit.write(f"{self.folder}/step-{{step}}.safetensors.tmp",
              kit.checkpoint(step, size=size))
    os.rename(f"{self.folder}/step-{{step}}.safetensors.tmp",
              f"{self.folder}/step-{{step}}.safetensors")
def last(*_):
    notice = json.loads(kit.read(os.environ["CKPTSYNC_NOTICE_FILE"]))
    kit.write({self.path('notice')!r}, json.dumps(notice))
    save(2, {int(0.3 * WHOLE) & ~4095})
signal.signal(signal.SIGUSR1, last)
save(1, {int(0.3 * WHOLE) & ~4095})
while True:
    time.sleep(0.05)
""")
        life = self.agent("run", "--save-signal", "USR1",
                          ["--", sys.executable, script])
        life.event("complete")
        self.begins(life, "step-1.safetensors")
        deadline = self.notice(life)
        self.ends(life, deadline, 75)
        self.assertIn("step-2.safetensors", self.names())
        notice = kit.json.loads(kit.read(self.path("notice")))
        self.assertEqual(notice["reason"], "test")
        self.assertLessEqual(notice["left_s"], WINDOW)
        self.assertGreater(notice["left_s"], WINDOW - 2)

    def test_status_foresees_it(self):
        agent = self.agent("agent", "--grace", f"{WINDOW}s")
        agent.event("began")
        self.put(1.5)
        agent.event("durable")
        habit = agent.event("habit")
        self.assertIn("SIGTERM (--grace) gives 10", habit["message"])
        status = self.run_program("status", "--json", self.folder)
        status = status.json["agents"][0]
        self.assertIs(status["fits"], False)
        self.assertFalse(status["behind"])
        self.assertAlmostEqual(status["bytes_per_s"] / RATE, 1, delta=0.3)
        self.put(0.3)
        agent.event("complete", 2)
        behind = self.run_program("status", "--json", self.folder, expect=6)
        behind = behind.json["agents"][0]
        self.assertTrue(behind["behind"])
        self.assertGreater(behind["behind_bytes"], 0)
        self.assertEqual(behind["newest"]["name"], "step-2.safetensors")
        self.assertEqual(behind["durable"]["name"], "step-1.safetensors")
        self.run_program("flush", "--timeout", "100ms", self.folder, expect=6)
        self.run_program("flush", self.folder)
        self.assertEqual(len(agent.events("durable")), 2)


if __name__ == "__main__":
    kit.main()
