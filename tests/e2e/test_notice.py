#!/usr/bin/python3
"""A cloud says that this machine goes: what the program does about it."""
import datetime
import json
import os
import signal
import subprocess
import sys
import time

import kit

METADATA = os.path.join(kit.TREE, "tests", "servers", "metadata")
SCRIPTS = os.path.join(kit.TREE, "tests", "data", "notice")


class Cloud:
    """tests/servers/metadata with one of its scripts."""
    def __init__(self, case, script, changes):
        self.folder = case.path("cloud")
        text = kit.read(os.path.join(SCRIPTS, script + ".json")).decode()
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        self.name = json.loads(text)["cloud"]
        case.addCleanup(lambda: subprocess.run([METADATA, "stop", self.folder],
                                               check=True))
        kit.write(case.path("script.json"), text)
        done = subprocess.run(
            [METADATA, "start", self.folder, "--script",
             case.path("script.json"), "--wait", "600"],
            stdout=subprocess.PIPE, check=True, text=True)
        address = "127.0.0.1:" + done.stdout.strip()
        case.environment["CKPTSYNC_METADATA_ENDPOINT"] = "http://" + address
        case.environment["GCE_METADATA_HOST"] = address
        case.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = \
            "http://" + address
        case.environment.pop("AWS_EC2_METADATA_DISABLED", None)

    def touch(self, name):
        kit.write(os.path.join(self.folder, name), "")

    def requests(self, method, path):
        lines = kit.read(os.path.join(self.folder, "requests")).decode()
        found = [json.loads(line) for line in lines.splitlines()]
        return [each for each in found
                if (each["method"], each["path"]) == (method, path)]


class Notice(kit.Case):
    def cloud(self, script, **changes):
        return Cloud(self, script, changes.get("changes", {}))

    def trainer(self, on_term=""):
        """Saves once, then waits; remembers every notice that it sees."""
        script = self.path("train.py")
        kit.write(script, f"""
import os, signal, sys, time
sys.path[:0] = [{kit.HERE!r}]
import kit
def save(step):
    path = {self.folder!r} + f"/step-{{step}}.safetensors"
    kit.write(path + ".tmp", kit.checkpoint(step))
    os.rename(path + ".tmp", path)
def end(*_):
    {on_term}
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
save(1)
seen = b""
while not os.path.exists({self.path('enough')!r}):
    try:
        now = kit.read(os.environ["CKPTSYNC_NOTICE_FILE"])
    except FileNotFoundError:
        now = b"gone" if seen else b""
    if now != seen:
        kit.write({self.path('seen')!r}, now)
        seen = now
    time.sleep(0.02)
""")
        return ["--", sys.executable, script]

    def begin_run(self, cloud, *options, **how):
        life = self.start("run", "--cloud", cloud.name, *options, self.folder,
                          self.remote, *self.trainer(**how))
        life.event("durable")
        life.event("seeing")
        return life

    def begin_agent(self, cloud, *options):
        self.save("step-1.safetensors", 1)
        agent = self.start("agent", "--cloud", cloud.name, *options,
                           self.folder, self.remote)
        agent.event("durable")
        agent.event("seeing")
        return agent

    def close(self):
        """What close.json says."""
        folder = self.remote_folder()
        for where, _, names in os.walk(folder):
            if "close.json" in names:
                return json.loads(kit.read(os.path.join(where, "close.json")))
        return None

    def seen(self, life):
        path = self.path("seen")
        return life.until("the trainer's look at the notice file",
                          lambda: os.path.exists(path) and kit.read(path))

    def test_aws_terminate(self):
        """The trainer is told, saves at its end, and all of it is durable."""
        cloud = self.cloud("aws-terminate", changes={"+120": "+6"})
        hook = self.path("hook")
        life = self.begin_run(
            cloud, "--on-notice",
            f"echo $CKPTSYNC_EVENT $CKPTSYNC_REASON $CKPTSYNC_DEADLINE_S "
            f"$CKPTSYNC_CHECKPOINT > {hook}", on_term="save(2)")
        cloud.touch("notice")
        began = time.monotonic()
        notice = json.loads(self.seen(life))
        self.assertEqual(notice["source"], "aws spot")
        self.assertEqual(notice["reason"], "terminate")
        self.assertIs(notice["survives"], False)
        self.assertLessEqual(notice["left_s"], 6)
        self.assertEqual(life.wait(), 75, str(life))
        self.assertLess(time.monotonic() - began, 6.5)
        words = kit.read(hook).decode().split()
        self.assertEqual(words[:2], ["notice", "terminate"])
        self.assertLessEqual(float(words[2]), 6)
        self.assertEqual(words[3], "step-1.safetensors")
        self.assertEqual([each["checkpoint"] for each
                          in life.events("durable")],
                         ["step-1.safetensors", "step-2.safetensors"])
        if not self.on_s3:
            self.assertEqual(self.close()["outcome"], "preempted")
            self.assertEqual(self.close()["notice"]["source"], "aws spot")

    def test_google_preempted(self):
        """A daemon stays until the end: another's trainer may still save."""
        cloud = self.cloud("google-preempted")
        agent = self.begin_agent(cloud, "--gcp-notice", "5s")
        cloud.touch("notice")
        agent.event("notice")
        self.save("step-2.safetensors", 2)
        agent.event("durable", 2)
        self.assertIsNone(agent.child.poll())
        self.assertEqual(agent.wait(), 0, str(agent))
        self.assertIn("step-2", agent.events("all_durable")[0]["message"])

    def azure(self, *options):
        cloud = self.cloud("azure-preempt", changes={"+30": "+6"})
        life = self.begin_run(cloud, *options)
        cloud.touch("notice")
        self.assertEqual(life.wait(), 75, str(life))
        return cloud.requests("POST", "/metadata/scheduledevents")

    def test_azure_is_never_told_to_go_on_unasked(self):
        self.assertEqual(self.azure(), [])

    def test_azure_is_told_to_go_on_after_the_flush(self):
        told = self.azure("--azure-ack")
        self.assertEqual(len(told), 1)
        self.assertIn("C7061BAC", told[0]["body"])
        if not self.on_s3:
            closed = self.close()["time"]
            self.assertGreaterEqual(told[0]["time"] + 0.01,
                                    closed["s"] + closed["ns"] / 1e9)

    def test_a_notice_that_is_withdrawn(self):
        cloud = self.cloud("azure-withdrawn")
        life = self.begin_run(cloud, "--save-signal", "CONT")
        cloud.touch("notice")
        self.assertEqual(json.loads(self.seen(life))["source"],
                         "azure Preempt")
        cloud.touch("vanish")
        life.event("withdrawn")
        life.until("the file to go",
                   lambda: kit.read(self.path("seen")) == b"gone")
        status = self.run_program("status", "--json", self.folder).json
        self.assertIsNone(status["agents"][0]["deadline"])
        kit.write(self.path("enough"), "")
        # Normal again: the trainer's own status counts.
        self.assertEqual(life.wait(), 0, str(life))
        if not self.on_s3:
            self.assertEqual(self.close()["outcome"], "finished")

    def goes_on(self, script, event):
        cloud = self.cloud(script)
        life = self.begin_run(cloud)
        cloud.touch("notice")
        life.event(event)
        self.assertFalse(life.events("stop_signal"))
        self.assertEqual(life.events("notice"), [])
        kit.write(self.path("enough"), "")
        self.assertEqual(life.wait(), 0, str(life))

    def test_a_hint_stops_nothing(self):
        self.goes_on("aws-rebalance", "hint")

    def test_a_hibernation_stops_nothing(self):
        """It is outlived: memory and all come back."""
        self.goes_on("aws-hibernate", "hint")

    def test_through_faults(self):
        for script, changes in (("aws-bursts", {"+120": "+5"}),
                                ("aws-half-json", {"+120": "+5"}),
                                ("aws-token-lost", {"+120": "+5"})):
            with self.subTest(script):
                self.folder = self.path(script)
                self.remote = self.new_remote("remote-" + script)
                cloud = Cloud(self, script, changes)
                agent = self.begin_agent(cloud)
                cloud.touch("notice")
                agent.event("notice")
                self.assertEqual(agent.wait(), 0, str(agent))
                self.assertEqual(len(agent.events("notice")), 1)
                subprocess.run([METADATA, "stop", cloud.folder], check=True)
                os.rename(cloud.folder, self.path("over-" + script))
                os.makedirs(cloud.folder)

    def test_the_earliest_end_counts(self):
        cloud = self.cloud("aws-terminate")
        agent = self.begin_agent(cloud)
        cloud.touch("notice")
        agent.event("notice")
        self.run_program("notice", "--in", "3s", self.folder)
        status = self.run_program("status", "--json", self.folder).json
        self.assertLessEqual(status["agents"][0]["deadline"]["left_s"], 3)
        self.assertEqual(agent.wait(10), 0, str(agent))

    def test_no_notices_here(self):
        """Said once, with its cause; nothing else suffers."""
        self.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = \
            "http://127.0.0.1:9"
        self.save("step-1.safetensors", 1)
        agent = self.start("agent", "--cloud", "aws", self.folder, self.remote)
        agent.event("durable")
        blind = agent.event("blind")
        status = self.run_program("status", "--json", self.folder).json
        notices = status["agents"][0]["notices"]
        self.assertEqual(notices["state"], "blind")
        self.assertEqual(notices["message"].strip() in blind["message"], True)
        time.sleep(2)
        self.assertEqual(len(agent.events("blind")), 1)
        agent.signal(signal.SIGINT)
        self.assertEqual(agent.wait(), 0, str(agent))

    def test_a_deadline_known_beforehand(self):
        end = datetime.datetime.now(datetime.timezone.utc) \
            + datetime.timedelta(seconds=5)
        life = self.start("run", "--cloud", "none", "--deadline",
                          end.strftime("%Y-%m-%dT%H:%M:%SZ"), self.folder,
                          self.remote, *self.trainer())
        self.assertEqual(json.loads(self.seen(life))["source"], "deadline")
        self.assertEqual(life.wait(10), 75, str(life))
        self.run_program("agent", "--deadline", "2020-01-01T00:00:00Z",
                         self.folder, self.remote, expect=2)

    def test_the_end_of_a_slurm_job(self):
        self.save("step-1.safetensors", 1)
        agent = self.start(
            "agent", "--cloud", "none", self.folder, self.remote,
            environment={"SLURM_JOB_END_TIME": str(int(time.time()) + 5)})
        agent.event("job_end")
        self.assertEqual(agent.wait(10), 0, str(agent))
        wrong = self.start(
            "agent", "--cloud", "none", self.folder, self.remote,
            environment={"SLURM_JOB_END_TIME": "1"})
        wrong.event("job_end")
        wrong.event("began")
        wrong.signal(signal.SIGINT)
        self.assertEqual(wrong.wait(), 0, str(wrong))

    def test_a_freeze(self):
        cloud = self.cloud("aws-quiet")
        agent = self.begin_agent(cloud)
        tokens = len(cloud.requests("PUT", "/latest/api/token"))
        agent.signal(signal.SIGSTOP)
        time.sleep(5)
        self.save("step-2.safetensors", 2)
        agent.signal(signal.SIGCONT)
        agent.event("resumed")
        agent.event("durable", 2)
        agent.until("a new token", lambda: len(
            cloud.requests("PUT", "/latest/api/token")) > tokens)
        agent.signal(signal.SIGINT)
        self.assertEqual(agent.wait(), 0, str(agent))

    def test_hooks(self):
        """A commit with its facts; one that hangs holds nothing up."""
        done = self.path("done")
        self.save("step-1.safetensors", 1)
        self.run_program(
            "push", "--on-commit", f"echo $CKPTSYNC_EVENT $CKPTSYNC_CHECKPOINT"
            f" $CKPTSYNC_ID $CKPTSYNC_STEP > {done}; exec sleep 100",
            self.folder, self.remote, patience=10)
        self.assertEqual(kit.read(done).split(),
                         [b"commit", b"step-1.safetensors", b"1-1", b"1"])
        self.assertEqual([pid for pid in kit.marked(self.mark)
                          if b"sleep" in kit.read(f"/proc/{pid}/cmdline")], [])

    def test_the_error_hook(self):
        done = self.path("done")
        blocked = self.path("blocked")
        kit.write(blocked, "no folder")
        self.save("step-1.safetensors", 1)
        agent = self.start("agent", "--cloud", "none", "--on-error",
                           f"echo $CKPTSYNC_EVENT $CKPTSYNC_MESSAGE > {done}",
                           "--socket", self.path("s"), self.folder,
                           self.remote)
        agent.event("durable")
        # A newer agent takes over from another place.
        other = self.start("agent", "--cloud", "none", "--socket",
                           self.path("t"), self.folder, self.remote)
        other.event("began")
        self.save("step-2.safetensors", 2)
        agent.event("superseded")
        agent.until("the hook", lambda: os.path.exists(done)
                    and kit.read(done).startswith(b"error "))

    def test_where_the_notice_file_may_be(self):
        os.makedirs(self.folder)
        for path in (self.folder + "/notice", self.path("no", "folder"),
                     self.path("")):
            self.run_program("agent", "--notice-file", path, self.folder,
                             self.remote, expect=2)


if __name__ == "__main__":
    kit.main()
