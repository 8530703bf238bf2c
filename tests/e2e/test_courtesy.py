#!/usr/bin/python3
"""Never in the way: memory, idle time, and the user's directory."""
import os
import subprocess
import time

import kit

MIB = 1 << 20


class Courtesy(kit.Case):
    def peak(self, *words):
        """Peak memory of one command, in bytes.

        A small process starts it: a child's peak counts what its parent had
        when it was forked."""
        done = subprocess.run(
            ["/usr/bin/python3", "-ISc",
             "import os, resource, subprocess, sys\n"
             "status = subprocess.call(sys.argv[1:])\n"
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
             "sys.exit(status)", kit.PROGRAM, *words],
            env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, check=True, text=True)
        return int(done.stdout.split()[-1]) * 1024

    def test_memory_does_not_grow_with_the_checkpoint(self):
        if "asan" in kit.PROGRAM or "tsan" in kit.PROGRAM:
            self.skipTest("a sanitizer's memory is not ours")
        self.save("step-1.safetensors", 1, size=512 * MIB, count=16)
        self.assertLess(self.peak("push", self.folder, self.remote), 96 * MIB)
        self.assertLess(self.peak("restore", self.remote, self.path("fresh")),
                        96 * MIB)

    def ticks(self, pids):
        total = 0
        for pid in pids:
            fields = kit.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total

    def test_idle(self):
        """Three seconds of nothing cost at most three hundredths."""
        life = self.start("run", self.folder, self.remote, "--", "sleep",
                          "1000")
        self.save("step-1.safetensors", 1)
        life.event("durable")
        time.sleep(0.5)
        pids = kit.marked(self.mark)
        before = self.ticks(pids)
        time.sleep(3)
        self.assertLessEqual(self.ticks(pids) - before, 3)

    def test_the_directory_is_left_alone(self):
        self.save("step-1.safetensors", 1)
        kit.write(self.folder + "/results.csv", "1\n")
        os.chmod(self.folder, 0o755)

        def facts():
            return [(path, os.lstat(path).st_mtime_ns, os.lstat(path).st_ino,
                     os.lstat(path).st_ctime_ns)
                    for path in [self.folder]
                    + sorted(os.path.join(self.folder, name)
                             for name in os.listdir(self.folder))]
        before = facts()
        life = self.start("run", self.folder, self.remote, "--", "sleep", "1")
        self.assertEqual(life.wait(), 0, str(life))
        self.push()
        self.assertEqual(facts(), before)

    def test_a_terminal_that_is_gone(self):
        """Nobody reads the log any more: the training goes on."""
        read, write = os.pipe()
        child = subprocess.Popen(
            [kit.PROGRAM, "run", self.folder, self.remote, "--", "sh", "-c",
             f"sleep 0.5; mkdir -p {self.folder}; echo done >{self.path('d')}"],
            env=self.environment, stderr=write, stdout=write,
            stdin=subprocess.DEVNULL)
        os.close(write)
        os.close(read)
        self.assertEqual(child.wait(60), 0)
        self.assertEqual(kit.read(self.path("d")), b"done\n")


if __name__ == "__main__":
    kit.main()
