#!/usr/bin/python3
"""contrib/demo shows what the README promises."""
import os
import subprocess

import kit


class Demo(kit.Case):
    def test_demo(self):
        done = subprocess.run(
            [os.path.join(kit.TREE, "contrib", "demo")], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            stdin=subprocess.DEVNULL, timeout=600,
            env=self.environment | {"CKPTSYNC": kit.PROGRAM,
                                    "TMPDIR": self.scratch})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("MURDER", done.stdout)
        self.assertRegex(done.stdout,
                         r"two: train +training from step [1-9]\d+ ")
        self.assertIn("Identical, bit for bit.", done.stdout)


if __name__ == "__main__":
    kit.main()
