#!/usr/bin/python3
"""A Kubernetes native sidecar: SIGTERM comes last, 2 s before SIGKILL.

The preStop hook says it at T+0.  Until the grace period is over the trainer,
in a container of its own, may still save; the sidecar cannot see it.
"""
import signal
import time

import kit

GRACE = 10


class Sidecar(kit.Case):
    def begin(self):
        self.save("step-1.safetensors", 1)
        # The socket's folder is a volume that both containers have.
        agent = self.start("agent", "--cloud", "none", "--socket",
                           self.path("socket"), self.folder, self.remote)
        agent.event("durable")
        return agent

    def test_sigterm_two_seconds_before_the_end(self):
        agent = self.begin()
        began = time.monotonic()
        self.run_program("notice", "--in", f"{GRACE}s", "--reason", "preStop",
                         "--socket", self.path("socket"))
        self.assertLess(time.monotonic() - began, 1, "a hook must return")
        self.save("step-2.safetensors", 2)
        agent.event("durable", 2)
        self.assertIsNone(agent.child.poll(), "it stays for the last save")
        time.sleep(max(0, began + GRACE - 2.2 - time.monotonic()))
        last = self.save("step-3.safetensors", 3)
        time.sleep(max(0, began + GRACE - 2 - time.monotonic()))
        agent.signal(signal.SIGTERM)
        self.assertEqual(agent.wait(2), 0, str(agent))
        self.restore(self.path("back"))
        self.assertEqual(kit.tree(self.path("back")),
                         {"step-3.safetensors": last})

    def test_a_hook_that_waits(self):
        agent = self.begin()
        self.save("step-2.safetensors", 2)
        self.run_program("notice", "--in", "20s", "--wait", "--socket",
                         self.path("socket"))
        self.assertEqual(agent.events("durable")[-1]["checkpoint"],
                         "step-2.safetensors")
        agent.signal(signal.SIGTERM)
        self.assertEqual(agent.wait(), 0, str(agent))

    def test_nobody_there(self):
        for word in ("notice", "flush", "status"):
            self.run_program(word, "--socket", self.path("socket"), expect=7)
            self.run_program(word, self.folder, expect=7)
            self.run_program(word, expect=7)

    def test_all_agents_of_this_user(self):
        agents = []
        for name in ("one", "two"):
            folder = self.path(name)
            kit.write(folder + "/step-1.safetensors", kit.checkpoint(name))
            agents.append(self.start("agent", "--cloud", "none", folder,
                                     self.new_remote("remote-" + name)))
            agents[-1].event("durable")
        status = self.run_program("status", "--json").json
        self.assertEqual({each["dir"] for each in status["agents"]},
                         {self.path("one"), self.path("two")})
        self.run_program("flush")
        self.run_program("notice", "--in", "3s", "--wait")
        for agent in agents:
            self.assertEqual(agent.wait(10), 0, str(agent))


if __name__ == "__main__":
    kit.main()
