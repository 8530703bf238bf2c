"""What the end-to-end tests share: they drive the built program as a user.

Environment of a run:
    CKPTSYNC                 the program (compulsory)
    CKPTSYNC_TEST_BUCKET     with CKPTSYNC_E2E_REMOTE=s3: use this bucket
    CKPTSYNC_SEED            seed of everything random, printed by each test
    CKPTSYNC_ROUNDS          kill rounds
    CKPTSYNC_LONG            take the time of `tests/run --long`
    CKPTSYNC_KEEP            leave the scratch folders
"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
TRAINERS = os.path.join(TREE, "tests", "trainers")
sys.path.insert(0, TRAINERS)

import tensors  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("CKPTSYNC", "ckptsync"))
SEED = int(os.environ.get("CKPTSYNC_SEED") or random.randrange(1 << 32))
PATIENCE = 120.0  # seconds: nothing takes so long unless it hangs
MARK = "CKPTSYNC_E2E_MARK"
OURS = ("CKPTSYNC_DIR", "CKPTSYNC_REMOTE", "CKPTSYNC_SOCKET",
        "CKPTSYNC_STATE_DIR", "CKPTSYNC_RESTORED")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(data, str):
        data = data.encode()
    with open(path, "wb") as f:
        f.write(data)


def tree(folder, ignore=()):
    """path -> "link TARGET", "folder" or the hash of a file's bytes."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(where, name)
            relative = os.path.relpath(path, folder)
            if relative.split("/")[0] in ignore:
                continue
            if os.path.islink(path):
                found[relative] = "link " + os.readlink(path)
            elif os.path.isdir(path):
                found[relative] = "folder"
            else:
                found[relative] = sha256(read(path))
    return found


def noise(length, seed):
    return random.Random(seed).randbytes(length)


def checkpoint(seed, size=1 << 20, count=4):
    """A whole safetensors file that depends on seed alone."""
    each = size // count
    return tensors.pack({f"layer.{i}.weight":
                         ("U8", [each], noise(each, f"{seed}/{i}"))
                         for i in range(count)})


def marked(mark):
    """The ids of the processes that carry this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            if wanted in read(f"/proc/{name}/environ").split(b"\0"):
                found.append(int(name))
        except OSError:
            continue
    return found


def lives(pid):
    """Whether one of its threads still runs, and so holds files and locks."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            status = read(f"/proc/{pid}/task/{task}/stat")
            if status.rpartition(b")")[2].split()[0] not in (b"Z", b"X"):
                return True
    except OSError:
        pass
    return False


def murder(mark, order=None):
    """SIGKILL all marked processes until none is left."""
    limit = time.monotonic() + PATIENCE
    killed = set()
    while True:
        alive = marked(mark)
        if order:
            order.shuffle(alive)
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except ProcessLookupError:
                pass
        # One that is ending has no environment any more, but its locks.
        killed = {pid for pid in killed if lives(pid)}
        if not alive and not killed:
            return
        if time.monotonic() > limit:
            raise AssertionError(f"processes {alive} do not die")
        time.sleep(0.005)


class Result:
    def __init__(self, words, status, out, err):
        self.words = words
        self.status = status
        self.out = out
        self.err = err

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return (f"{' '.join(self.words)}\nstatus {self.status}\n"
                f"--- stdout\n{self.out[-3000:]}\n--- stderr\n"
                f"{self.err[-6000:]}")


class Process:
    """A program in the background; its stderr is a JSON log in a file."""
    def __init__(self, words, environment, log, out, **how):
        self.words = words
        self.log = log
        self.out = out
        with open(log, "wb") as err, open(out, "wb") as output:
            self.child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=err,
                env=environment, start_new_session=True, **how)

    def lines(self):
        """The events in the log so far."""
        found = []
        for line in read(self.log).split(b"\n")[:-1]:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "event" in event:
                found.append(event)
        return found

    def events(self, name):
        return [line for line in self.lines() if line["event"] == name]

    def until(self, what, test, patience=PATIENCE):
        """Wait until test() gives something true and return that."""
        limit = time.monotonic() + patience
        while True:
            ended = self.child.poll() is not None
            value = test()
            if value:
                return value
            if ended:
                raise AssertionError(f"ended while waiting for {what}: {self}")
            if time.monotonic() > limit:
                raise AssertionError(f"no {what} in time: {self}")
            time.sleep(0.02)

    def event(self, name, count=1, patience=PATIENCE):
        """Wait for the count-th event of this name."""
        return self.until(
            f"event {name} #{count}",
            lambda: (self.events(name)[count - 1:count] or [None])[0],
            patience)

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, patience=PATIENCE):
        try:
            return self.child.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"does not end: {self}") from None

    def __str__(self):
        return str(Result(self.words, self.child.poll(),
                          read(self.out).decode(errors="replace"),
                          read(self.log).decode(errors="replace")))


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="ckptsync-e2e-")
        self.addCleanup(self.clear)
        self.mark = str(uuid.uuid4())
        self.count = 0
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in OURS}
        self.environment[MARK] = self.mark
        self.processes = []
        self.environment["CKPTSYNC_STATE_DIR"] = self.path("state")
        self.environment["XDG_RUNTIME_DIR"] = self.path("runtime")
        os.mkdir(self.path("runtime"), 0o700)
        self.random = random.Random(f"{SEED}/{self.id()}")
        self.remote = self.new_remote()
        self.folder = self.path("checkpoints")

    def clear(self):
        murder(self.mark)
        for process in self.processes:
            process.child.wait()
        if os.environ.get("CKPTSYNC_KEEP"):
            print(f"left {self.scratch}", file=sys.stderr)
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    @property
    def on_s3(self):
        return os.environ.get("CKPTSYNC_E2E_REMOTE") == "s3"

    def new_remote(self, name="remote"):
        if self.on_s3:
            bucket = os.environ["CKPTSYNC_TEST_BUCKET"]
            return f"s3://{bucket}/e2e/{uuid.uuid4()}"
        return "file://" + self.path(name)

    def remote_folder(self):
        """Where a file:// remote's objects lie."""
        if self.on_s3:
            self.skipTest("looks into a file:// remote")
        return self.remote[len("file://"):]

    def with_environment(self, changes):
        environment = dict(self.environment)
        for name, value in (changes or {}).items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        return environment

    def run_program(self, *words, expect=0, environment=None,
                    patience=PATIENCE, program=PROGRAM, **how):
        """Run to the end; `expect` is the exit status (None: any)."""
        words = [program] + [str(word) for word in words]
        try:
            done = subprocess.run(
                words, env=self.with_environment(environment),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, timeout=patience, check=False, **how)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{words} hangs:\n"
                                 f"{(late.stderr or b'').decode()}") from None
        result = Result(words, done.returncode,
                        done.stdout.decode(errors="replace"),
                        done.stderr.decode(errors="replace"))
        if expect is not None:
            self.assertEqual(result.status, expect, str(result))
        return result

    def start(self, *words, environment=None, before=(), **how):
        """Start `ckptsync WORDS` with a JSON log, in the background."""
        self.count += 1
        first, *rest = [str(word) for word in words]
        process = Process(
            [*before, PROGRAM, first, "--log-format", "json", *rest],
            self.with_environment(environment),
            self.path(f"log-{self.count}"), self.path(f"out-{self.count}"),
            **how)
        self.processes.append(process)
        return process

    def push(self, *options, **how):
        return self.run_program("push", *options, self.folder, self.remote,
                                **how)

    def restore(self, folder, *options, **how):
        return self.run_program("restore", *options, self.remote, folder,
                                **how)

    def save(self, name, seed, **how):
        """Write a whole checkpoint and return its hash."""
        data = checkpoint(seed, **how)
        write(os.path.join(self.folder, name), data)
        return sha256(data)


def main():
    print(f"CKPTSYNC_SEED={SEED}", file=sys.stderr)
    unittest.main(verbosity=2)
