#!/usr/bin/python3
"""A store that does not answer is not an empty one."""
import http.server
import os
import threading
import time

import kit

NOWHERE = "s3://nowhere/run"
CLOSED = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9",
          "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
          "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
          "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


class Unreachable(kit.Case):
    def test_the_trainer_is_not_started(self):
        began = time.monotonic()
        done = self.run_program(
            "run", "--start-timeout", "2s", self.folder, NOWHERE, "--",
            "touch", self.path("started"), environment=CLOSED, expect=1)
        self.assertFalse(os.path.exists(self.path("started")))
        self.assertIn("127.0.0.1 port 9", done.err)
        self.assertLess(time.monotonic() - began, 60)

    def test_a_restore_does_not_say_that_there_is_nothing(self):
        """It tries for two minutes; only CKPTSYNC_LONG waits for its end."""
        life = self.start("restore", "--if-exists", NOWHERE, self.folder,
                          environment=CLOSED)
        if os.environ.get("CKPTSYNC_LONG"):
            self.assertEqual(life.wait(400), 1, str(life))
            return
        time.sleep(5)
        self.assertIsNone(life.child.poll(), str(life))


if __name__ == "__main__":
    kit.main()
