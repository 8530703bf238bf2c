#!/usr/bin/python3
"""A real S3 server that goes away, comes back, and says no."""
import os
import subprocess
import sys
import time
import unittest

import kit

SERVER = os.environ.get("CKPTSYNC_TEST_SERVER")
FOLDER = os.environ.get("CKPTSYNC_TEST_SERVER_FOLDER")


@unittest.skipUnless(SERVER, "needs a server of its own")
class Server(kit.Case):
    def server(self, word):
        subprocess.run([SERVER, word, FOLDER], check=True)

    def kill_server(self):
        self.server("kill")
        self.addCleanup(self.revive_server)
        self.dead = True

    def revive_server(self):
        if getattr(self, "dead", False):
            self.server("revive")
            self.dead = False

    def trainer(self):
        """Saves step after step until a file says that it is enough."""
        script = self.path("train.py")
        kit.write(script, f"""
import os, sys, time
sys.path[:0] = [{kit.HERE!r}]
import kit
step = 0
while not os.path.exists({self.path('enough')!r}):
    step += 1
    kit.write(f"{self.folder}/step-{{step}}.safetensors", kit.checkpoint(step))
    if step > 2:
        os.unlink(f"{self.folder}/step-{{step - 2}}.safetensors")
    time.sleep(0.3)
""")
        return [sys.executable, script]

    def last(self):
        return max(int(name[5:-12]) for name in os.listdir(self.folder))

    def test_an_outage_in_the_middle(self):
        life = self.start("run", self.folder, self.remote, "--",
                          *self.trainer())
        life.event("durable")
        self.kill_server()
        before = self.last()
        life.until("training without a server",
                   lambda: self.last() > before + 3)
        self.revive_server()
        count = len(life.events("durable"))
        life.event("durable", count=count + 1)
        kit.write(self.path("enough"), "")
        self.assertEqual(life.wait(), 0, str(life))
        step = self.last()
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(kit.tree(fresh), {
            f"step-{step}.safetensors": kit.sha256(kit.checkpoint(step))})

    def test_a_server_that_comes_up_late(self):
        self.save("step-5.safetensors", 5)
        self.push()
        self.kill_server()
        fresh = self.path("fresh")
        life = self.start("run", fresh, self.remote, "--", "sh", "-c",
                          f"ls {fresh}")
        time.sleep(1)
        self.assertIsNone(life.child.poll(), str(life))
        self.assertEqual(kit.read(life.out), b"")
        self.revive_server()
        self.assertEqual(life.wait(), 0, str(life))
        self.assertEqual(kit.read(life.out), b"step-5.safetensors\n")

    def test_a_notice_during_an_outage(self):
        """Not durable, said in time, with 6."""
        life = self.start("run", "--grace", "3s", self.folder, self.remote,
                          "--", *self.trainer())
        life.event("durable")
        self.kill_server()
        before = self.last()
        life.until("another save", lambda: self.last() > before)
        began = time.monotonic()
        life.signal(15)
        self.assertEqual(life.wait(), 6, str(life))
        self.assertLess(time.monotonic() - began, 20)

    def test_wrong_keys(self):
        self.save("step-5.safetensors", 5)
        for name, value, words in (
                ("AWS_SECRET_ACCESS_KEY", "wrong", "SignatureDoesNotMatch"),
                ("AWS_ACCESS_KEY_ID", "nobody", "InvalidAccessKeyId")):
            began = time.monotonic()
            done = self.push(environment={name: value}, expect=1)
            self.assertIn(words, done.err)
            self.assertLess(time.monotonic() - began, 20, "tried for long")

    def test_no_such_bucket(self):
        done = self.run_program("restore", "--if-exists",
                                "s3://ckptsync-no-such/run", self.folder,
                                expect=1)
        self.assertIn("ckptsync-no-such", done.err)

    def test_virtual_hosted_addressing(self):
        self.save("step-5.safetensors", 5)
        url = os.environ["AWS_ENDPOINT_URL"].replace("127.0.0.1", "localhost")
        self.push("--addressing", "virtual", "--endpoint-url", url)
        fresh = self.path("fresh")
        self.restore(fresh, "--addressing", "path")
        self.assertEqual(kit.tree(fresh), kit.tree(self.folder))


if __name__ == "__main__":
    kit.main()
