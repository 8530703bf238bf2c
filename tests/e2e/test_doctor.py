#!/usr/bin/python3
"""What `doctor` says of a machine: each fault is made for real where it can
be, and must be named, with a cure, and with 1; a machine without one gives 0.

The metadata of clouds lies at one address that is the machine's, so the faults
of notices are made in network namespaces (unshare, no root needed).  A small S3
server of our own has the faults that Ceph's has not: a wrong clock, another
region, listings from the past.
"""
import email.utils
import http.server
import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

import kit

LIMIT = 30.0  # seconds: more than that nothing may take
KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": None, "AWS_PROFILE": None,
        "AWS_ENDPOINT_URL_S3": None, "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": None, "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1", "http_proxy": None, "HTTP_PROXY": None,
        "all_proxy": None, "ALL_PROXY": None}
PLATFORMS = {"KUBERNETES_SERVICE_HOST": None, "SLURM_JOB_ID": None,
             "ECS_CONTAINER_METADATA_URI_V4": None}

# A metadata server at the usual address, in one file, for a namespace.
METADATA = r'''
import http.server, socketserver, sys, time
way = sys.argv[1]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_PUT(self):
        if way == "hops":
            time.sleep(600)     # the answer dies on its way
        self.say(200, b"T" * 56) if way in ("aws", "going") else self.say(403)
    def do_GET(self):
        google = {"Metadata_Flavor": "Google", "ETag": "abc"}
        if way == "hops":
            self.say(401)
        elif way == "gke":
            self.say(404 if "instance/" in self.path else 200, b"", **google)
        elif way == "gce" and "/computeMetadata/" in self.path:
            self.say(200, b"NONE" if "maintenance" in self.path else b"FALSE",
                     **google)
        elif way == "going" and self.path.endswith("instance-action"):
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 100))
            self.say(200, b'{"action": "terminate", "time": "%s"}' % when.encode())
        else:
            self.say(404 if way in ("aws", "going") else 403, b"<html></html>")
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
server = Server(("169.254.169.254", 80), Handler)
print("ready", flush=True)
server.serve_forever()
'''

# In namespaces of its own: make the route or the server, then run the rest.
INSIDE = r'''
ip link set lo up || exit 97
way=$1 server=$2; shift 2
case $way in
prohibit|unreachable|blackhole) ip route add "$way" 169.254.169.254/32 || exit 97 ;;
nothing) ;;
*)
    rm -f "$server.out"
    ip addr add 169.254.169.254/32 dev lo || exit 97
    {python} "$server" "$way" >"$server.out" 2>/dev/null & child=$!
    until [ -s "$server.out" ]; do kill -0 $child || exit 97; sleep 0.02; done ;;
esac
"$@"
status=$?
[ -z "$child" ] || kill -9 $child
exit $status
'''.replace("{python}", sys.executable)


def can_unshare():
    return subprocess.run(["unshare", "-rn", "ip", "link", "set", "lo", "up"],
                          check=False, capture_output=True).returncode == 0


class Objects(http.server.BaseHTTPRequestHandler):
    """As much of S3 as doctor needs, with faults: see Store."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(time.time() + self.server.ahead,
                                      usegmt=True)

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, **headers):
        self.say(status, f"<Error><Code>{code}</Code><Message>no</Message>"
                 f"</Error>".encode(), **headers)

    def read_body(self, store):
        """At the store's rate; None when the client goes away."""
        left, body = int(self.headers.get("Content-Length") or 0), b""
        while left > 0:
            piece = self.rfile.read(min(left, 16384) if store.rate else left)
            if not piece:
                return None
            body += piece
            left -= len(piece)
            if store.rate:
                with store.line:
                    time.sleep(len(piece) / store.rate)
        return body

    def answer(self):
        store = self.server
        body = self.read_body(store)
        if body is None:
            self.close_connection = True
            return None
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        key = urllib.parse.unquote(url.path)[len("/bucket/"):]
        region = self.headers.get("Authorization", "").split("/")[2:3]
        if region != [store.region]:
            return self.refuse(301, "PermanentRedirect",
                               x_amz_bucket_region=store.region)
        step = "LIST" if "list-type" in query else self.command
        with store.lock:
            store.steps.append((step, key))
        if step in store.denied:
            return self.refuse(403, "AccessDenied")
        with store.lock:
            return getattr(self, "on_" + step)(store, key, query, body)

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = answer

    def on_PUT(self, store, key, query, body):
        store.objects[key] = body
        self.say(200)

    def on_GET(self, store, key, query, body):
        if key not in store.objects:
            return self.refuse(404, "NoSuchKey")
        data = store.objects[key]
        return self.say(200, data[:-1] + b"!" if store.damages else data)

    def on_DELETE(self, store, key, query, body):
        store.objects.pop(key, None)
        self.say(204)

    def on_LIST(self, store, key, query, body):
        prefix = query["prefix"][0]
        names = [name for name in sorted(store.objects)
                 if name.startswith(prefix) and not store.forgets]
        self.say(200, ("<ListBucketResult><IsTruncated>false</IsTruncated>" +
                       "".join(f"<Contents><Key>{name}</Key><Size>"
                               f"{len(store.objects[name])}</Size></Contents>"
                               for name in names) +
                       "</ListBucketResult>").encode())


class Store(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Objects)
        self.lock = threading.Lock()
        self.line = threading.Lock()
        self.objects = {}
        self.steps = []
        self.ahead = 0           # of its clock, seconds
        self.region = "us-east-1"
        self.denied = ()         # "PUT", "GET", "LIST", "DELETE"
        self.forgets = False     # listings show nothing
        self.damages = False     # reads bring other bytes
        self.rate = 0            # bytes a second, all together; 0: any

    def handle_error(self, request, client_address):
        pass                     # a client that went away


class Doctor(kit.Case):
    def setUp(self):
        super().setUp()
        self.environment.update({name: value for name, value in
                                 {**KEYS, **PLATFORMS}.items()
                                 if value is not None})
        for name, value in {**KEYS, **PLATFORMS}.items():
            if value is None:
                self.environment.pop(name, None)

    def doctor(self, *words, expect=None, before=(), environment=None):
        """The findings, by check; several of one check are a list."""
        began = time.monotonic()
        words = [*before, kit.PROGRAM, "doctor", "--json", *words]
        done = self.run_program(*words[1:], program=words[0], expect=expect,
                                environment=environment)
        self.assertLess(time.monotonic() - began, LIMIT + 5, str(done))
        found = {}
        for finding in done.json["findings"]:
            found.setdefault(finding["check"], []).append(finding)
        states = [f["state"] for f in done.json["findings"]]
        self.assertEqual(done.json["wrong"], states.count("wrong"))
        self.assertEqual(done.json["hints"], states.count("hint"))
        self.assertEqual(done.json["left_out"], states.count("left out"))
        self.assertEqual(done.status, 1 if "wrong" in states else 0, str(done))
        for finding in done.json["findings"]:
            if finding["state"] == "wrong":
                self.assertTrue(finding.get("cure"), finding)
        self.done = done
        return found

    def only(self, found, check, state, *texts):
        """One finding of the check, in that state, saying that; a text that
        begins with > is of the cure."""
        self.assertIn(check, found, str(self.done))
        self.assertEqual([f["state"] for f in found[check]], [state],
                         str(self.done))
        finding = found[check][0]
        for text in texts:
            if text.startswith(">"):
                self.assertIn(text[1:], finding.get("cure", ""), finding)
            else:
                self.assertIn(text, finding["message"], finding)
        return finding

    def nothing_else_is_wrong(self, found, *checks):
        self.assertEqual(sorted({check for check, findings in found.items()
                                 if any(f["state"] == "wrong"
                                        for f in findings)}),
                         sorted(checks), str(self.done))

    def store(self):
        store = Store()
        thread = threading.Thread(target=store.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(store.server_close)
        self.addCleanup(store.shutdown)
        self.environment["AWS_ENDPOINT_URL"] = \
            f"http://127.0.0.1:{store.server_address[1]}"
        return store


@unittest.skipIf(os.environ.get("CKPTSYNC_E2E_REMOTE") == "s3",
                 "runs once, without a server")
class Machine(Doctor):
    REMOTE = "s3://bucket/run1"

    def test_nothing_is_wrong(self):
        self.save("last.safetensors", 1)
        os.mkdir(self.path("remote"))
        found = self.doctor("--cloud", "none", self.folder, self.remote,
                            expect=0)
        self.only(found, "directory", "ok", "1 complete checkpoint",
                  "last.safetensors")
        for check in ("inotify", "leases", "remote", "objects", "listings",
                      "contents", "notices", "fit", "space"):
            self.only(found, check, "ok")
        self.assertGreater(self.only(found, "speed", "ok")["bytes_per_s"], 0)
        self.assertEqual(kit.tree(self.path("remote"), ignore=(".temporary",)),
                         {}, "something was left behind")

    def test_what_is_not_named_is_left_out(self):
        found = self.doctor("--cloud", "none", expect=0)
        self.only(found, "directory", "left out", "no DIR")
        self.only(found, "remote", "left out", "no REMOTE")
        self.assertNotIn("speed", found)
        found = self.doctor("--cloud", "none", self.remote, expect=0)
        self.only(found, "remote", "ok", "not there yet")
        self.only(found, "objects", "left out")
        self.assertFalse(os.path.exists(self.path("remote")))
        found = self.doctor("--cloud", "none", self.folder, expect=0)
        self.only(found, "directory", "ok", "not there yet")
        self.assertFalse(os.path.exists(self.folder))

    def test_places_from_the_environment(self):
        os.mkdir(self.folder)
        self.doctor("--cloud", "none", expect=0, environment={
            "CKPTSYNC_DIR": self.folder, "CKPTSYNC_REMOTE": self.remote})
        self.assertEqual(self.done.json["folder"], self.folder)
        self.assertEqual(self.done.json["remote"], self.remote)

    def test_lines_for_people(self):
        """In words, at most 79 columns, the result at the end."""
        self.save("last.safetensors", 1)
        done = self.run_program("doctor", "--cloud", "none",
                                "--region", "nowhere", self.folder,
                                "s3://bucket/run", expect=1,
                                environment={"AWS_ENDPOINT_URL":
                                             "http://127.0.0.1:9"})
        lines = done.out.splitlines()
        self.assertEqual(lines[0], f"{self.folder} -> s3://bucket/run")
        self.assertLessEqual(max(len(line) for line in lines[1:]
                                 if " " in line.strip()), 79, done.out)
        self.assertRegex(done.out, r"(?m)^WRONG    remote       s3://bucket")
        self.assertRegex(done.out, r"(?m)^ {18}->  check the network")
        self.assertRegex(lines[-1], r"^1 wrong(, \d hints?)?, \d left out$")

    def test_wrong_usage(self):
        self.run_program("doctor", "--cloud", "moon", expect=2)
        self.run_program("doctor", "--keep", "3", expect=2)
        self.run_program("doctor", self.folder, self.folder, expect=2)
        found = self.doctor("--cloud", "none", "gopher://x/y")
        self.only(found, "remote", "wrong", ">s3://bucket/prefix")

    # --- the remote

    def test_a_store_that_works(self):
        store = self.store()
        found = self.doctor("--cloud", "none", self.REMOTE, expect=0)
        self.only(found, "remote", "ok", "s3://bucket/run1")
        self.only(found, "credentials", "ok", "the environment")
        self.only(found, "clock", "ok")
        self.only(found, "objects", "ok")
        self.assertEqual(store.objects, {})
        sent = [key for step, key in store.steps if step == "PUT"]
        self.assertEqual(len(set(sent)), len(sent), "a key was used twice")
        for key in sent:
            self.assertRegex(key, r"^run1/doctor-[0-9a-f]{16}-\d+$")

    def test_a_clock_that_is_an_hour_off(self):
        store = self.store()
        for ahead, words in ((3600, "behind"), (-3600, "ahead of")):
            store.ahead = ahead
            found = self.doctor("--cloud", "none", self.REMOTE)
            clock = self.only(found, "clock", "wrong", words, ">chrony")
            self.assertLess(abs(clock["server_ahead_s"] - ahead), 60)
            self.nothing_else_is_wrong(found, "clock")

    def test_another_region(self):
        store = self.store()
        store.region = "eu-west-3"
        found = self.doctor("--cloud", "none", self.REMOTE, expect=0)
        self.only(found, "region", "hint", "eu-west-3", "us-east-1",
                  ">--region eu-west-3")
        found = self.doctor("--cloud", "none", "--region", "eu-west-3",
                            self.REMOTE, expect=0)
        self.assertNotIn("region", found)

    def test_rights_that_are_missing(self):
        for step, word, right in (("PUT", "write", "s3:PutObject"),
                                  ("LIST", "list", "s3:ListBucket"),
                                  ("DELETE", "delete", "s3:DeleteObject")):
            store = self.store()
            store.denied = (step,)
            found = self.doctor("--cloud", "none", self.REMOTE)
            self.nothing_else_is_wrong(found, "objects")
            first = found["objects"][0]
            self.assertEqual(first["step"], word)
            self.assertIn(right, first["cure"])
            if step == "DELETE":
                self.assertIn("may be left", found["objects"][1]["message"])
            elif step == "LIST":
                self.assertEqual(store.objects, {})

    def test_damaged_bytes(self):
        store = self.store()
        store.damages = True
        found = self.doctor("--cloud", "none", self.REMOTE)
        self.only(found, "objects", "wrong", "not what was written",
                  ">do not use this store")
        self.assertEqual(store.objects, {})

    def test_listings_from_the_past(self):
        store = self.store()
        store.forgets = True
        found = self.doctor("--cloud", "none", self.REMOTE)
        self.only(found, "listings", "wrong", "out of date", ">--store weak")
        found = self.doctor("--cloud", "none", "--store", "weak", self.REMOTE,
                            expect=0)
        self.only(found, "listings", "hint", "deletes nothing")

    def test_a_checkpoint_that_does_not_fit(self):
        """At 1 MB a second, with 2 s to go; and never more than it says."""
        store = self.store()
        store.rate = 1e6
        self.save("last.safetensors", 1, size=8 << 20)
        found = self.doctor("--cloud", "none", "--grace", "2s", self.folder,
                            self.REMOTE)
        speed = self.only(found, "speed", "ok")["bytes_per_s"]
        self.assertLess(speed, 1.5e6)
        self.assertGreater(speed, 0.3e6)
        fit = self.only(found, "fit", "wrong", "8.0 MiB", "--grace", ">lost")
        self.assertEqual(fit["window_s"], 2.0)
        self.assertGreater(fit["needed_s"], 5)
        self.assertEqual(store.objects, {})
        found = self.doctor("--cloud", "none", "--grace", "100s", self.folder,
                            self.REMOTE, expect=0)
        self.only(found, "fit", "ok")

    def test_no_keys(self):
        found = self.doctor("--cloud", "none", self.REMOTE, environment={
            "AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None,
            "AWS_EC2_METADATA_DISABLED": "true", "HOME": self.path("home"),
            "AWS_SHARED_CREDENTIALS_FILE": None, "AWS_CONFIG_FILE": None,
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": None,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": None,
            "AWS_WEB_IDENTITY_TOKEN_FILE": None})
        self.only(found, "credentials", "wrong", "no keys",
                  ">AWS_ACCESS_KEY_ID")

    def test_keys_that_end(self):
        self.store()
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ",
                             time.gmtime(time.time() + 1800))
        token = {"AWS_SESSION_TOKEN": "token"}
        found = self.doctor("--cloud", "none", self.REMOTE, environment={
            **token, "AWS_CREDENTIAL_EXPIRATION": soon})
        self.only(found, "credentials", "wrong", "cannot be renewed",
                  ">role")
        self.nothing_else_is_wrong(found, "credentials")
        found = self.doctor("--cloud", "none", self.REMOTE, environment=token,
                            expect=0)
        self.only(found, "credentials", "hint", "end is not known")

    def test_a_server_that_is_not_there(self):
        found = self.doctor("--cloud", "none", self.REMOTE, environment={
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
        self.only(found, "remote", "wrong", "http://127.0.0.1:9",
                  ">the network and the endpoint")
        self.only(found, "objects", "left out")

    def test_a_server_that_never_answers(self):
        """Accepted by the kernel, answered by nobody."""
        with socketserver.TCPServer(("127.0.0.1", 0), None) as deaf:
            found = self.doctor("--cloud", "none", self.REMOTE, environment={
                "AWS_ENDPOINT_URL":
                f"http://127.0.0.1:{deaf.server_address[1]}"})
        self.only(found, "remote", "wrong", "no answer within 8 s")

    def test_an_interrupt_leaves_nothing_behind(self):
        store = self.store()
        store.rate = 1e6
        for number in (signal.SIGINT, signal.SIGTERM):
            store.steps.clear()
            child = subprocess.Popen(
                [kit.PROGRAM, "doctor", "--cloud", "none", self.REMOTE],
                env=self.environment, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            limit = time.monotonic() + kit.PATIENCE
            while len([s for s, _ in store.steps if s == "PUT"]) < 4:
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.01)
            child.send_signal(number)
            out, err = child.communicate(timeout=kit.PATIENCE)
            self.assertEqual(child.returncode, -number, (out, err))
            self.assertIn(b"interrupted", err)
            self.assertEqual(store.objects, {})

    def test_a_reader_that_leaves_early(self):
        store = self.store()
        child = subprocess.Popen(
            [kit.PROGRAM, "doctor", "--cloud", "none", self.REMOTE],
            env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        child.stdout.close()
        err = child.stderr.read()
        child.stderr.close()
        self.assertEqual(child.wait(kit.PATIENCE), 1, err)
        self.assertIn(b"standard output", err)
        self.assertEqual(store.objects, {})

    # --- the directory

    def test_a_full_disk(self):
        """The checkpoint lies beside; restored here it would not fit."""
        self.save("last.safetensors", 1, size=6 << 20)
        self.push()
        place = self.path("small")
        os.mkdir(place)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m",
                                "tmpfs", place], check=False,
                               capture_output=True)
        if mount.returncode != 0:
            self.skipTest("may not mount")
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        found = self.doctor("--cloud", "none", place, self.remote)
        space = self.only(found, "space", "wrong", "neither a restore",
                          ">make room")
        self.assertEqual(space["needed_bytes"], found["contents"][0].get(
            "largest_bytes", space["needed_bytes"]))
        self.assertLessEqual(space["free_bytes"], 4 << 20)
        self.nothing_else_is_wrong(found, "space")

    @unittest.skipUnless(shutil.which("bindfs"), "needs bindfs")
    def test_a_file_system_that_tells_nothing(self):
        self.save("last.safetensors", 1)
        place = self.path("fuse")
        os.mkdir(place)
        if subprocess.run(["bindfs", self.folder, place], check=False,
                          capture_output=True).returncode != 0:
            self.skipTest("may not mount")
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        found = self.doctor("--cloud", "none", place, expect=0)
        self.only(found, "inotify", "hint", "fuse", "every 2 s")
        self.only(found, "leases", "hint", "fuse", "quiet for 10 s")

    @unittest.skipUnless(shutil.which("bindfs"), "needs bindfs")
    def test_a_file_system_that_hangs(self):
        """Its server does not answer; the rest is checked all the same."""
        os.mkdir(self.folder)
        place = self.path("fuse")
        os.mkdir(place)
        server = subprocess.Popen(["bindfs", "-f", self.folder, place],
                                  stderr=subprocess.DEVNULL)
        limit = time.monotonic() + kit.PATIENCE
        while not os.path.ismount(place):
            if server.poll() is not None or time.monotonic() > limit:
                server.kill()
                server.wait()
                self.skipTest("may not mount")
            time.sleep(0.02)
        self.addCleanup(server.wait)
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        self.addCleanup(server.send_signal, signal.SIGCONT)
        server.send_signal(signal.SIGSTOP)
        found = self.doctor("--cloud", "none", place)
        self.only(found, "directory", "wrong", "not done within 15 s",
                  ">its file system")
        self.only(found, "notices", "ok")

    def test_a_directory_that_cannot_be_written(self):
        place = self.path("sealed")
        os.mkdir(place)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", place],
                       check=False, capture_output=True)
        if not os.path.ismount(place):
            self.skipTest("may not mount")
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        found = self.doctor("--cloud", "none", place)
        self.assertEqual([f["state"] for f in found["directory"]],
                         ["ok", "wrong"], str(self.done))
        self.assertIn("restore", found["directory"][1]["message"])

    def limited(self, name, value):
        """In a user namespace of its own, with that limit."""
        return ["unshare", "-r", "sh", "-c",
                f"echo {value} >/proc/sys/user/{name} || exit 97; "
                'exec "$@"', "sh"]

    @unittest.skipUnless(can_unshare(), "no user namespaces here")
    def test_a_low_limit_of_watches(self):
        for i in range(12):
            os.makedirs(os.path.join(self.folder, f"run-{i}"))
        found = self.doctor("--cloud", "none", self.folder,
                            before=self.limited("max_inotify_watches", 8))
        limit = self.only(found, "inotify", "wrong", "13 directories",
                          "user.max_inotify_watches is 8",
                          ">sysctl user.max_inotify_watches=")
        self.assertEqual(limit["directories"], 13)
        self.nothing_else_is_wrong(found, "inotify")
        found = self.doctor("--cloud", "none", self.folder, expect=0,
                            before=self.limited("max_inotify_watches", 20))
        self.only(found, "inotify", "hint", "user.max_inotify_watches is 20")

    @unittest.skipUnless(can_unshare(), "no user namespaces here")
    def test_no_inotify_instance(self):
        os.mkdir(self.folder)
        found = self.doctor("--cloud", "none", self.folder,
                            before=self.limited("max_inotify_instances", 0))
        self.only(found, "inotify", "wrong", "user.max_inotify_instances",
                  ">sysctl user.max_inotify_instances=")

    # --- who stops us

    def test_platforms(self):
        for variable, words in (
                ("KUBERNETES_SERVICE_HOST", ("terminationGracePeriodSeconds",
                                             "ckptsync notice --in 25s")),
                ("ECS_CONTAINER_METADATA_URI_V4", ("stopTimeout",)),
                ("SLURM_JOB_ID", ("--signal=B:TERM", "GraceTime"))):
            found = self.doctor("--cloud", "none", expect=0,
                                environment={variable: "1"})
            self.only(found, "stop_time", "hint",
                      *(">" + word for word in words))

    @staticmethod
    def remove_group(group):
        """Once what ran in it has been reaped."""
        limit = time.monotonic() + kit.PATIENCE
        while True:
            try:
                return os.rmdir(group)
            except OSError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.05)

    def test_a_unit_that_stops_too_early(self):
        """As a service of systemd: its control group, and its answer."""
        place = next((place for place in ("/sys/fs/cgroup/systemd",
                                          "/sys/fs/cgroup")
                      if os.path.exists(place + "/cgroup.procs")), None)
        if place is None:
            self.skipTest("no control groups")
        group = f"{place}/{os.path.basename(self.scratch)}.service"
        try:
            os.mkdir(group)
        except OSError:
            self.skipTest("may not make a control group")
        self.addCleanup(self.remove_group, group)
        tools = self.path("tools")
        kit.write(tools + "/systemctl", "#!/bin/sh\n"
                  'echo "$@" >' + self.path("asked") + "\n"
                  "echo TimeoutStopUSec=10s\necho KillMode=control-group\n")
        os.chmod(tools + "/systemctl", 0o755)
        found = self.doctor(
            "--cloud", "none", environment={
                "PATH": tools + ":" + os.environ["PATH"]},
            before=["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"',
                    "sh"])
        self.assertEqual([f["state"] for f in found["stop_time"]],
                         ["wrong", "hint"], str(self.done))
        self.assertIn("TimeoutStopSec=30", found["stop_time"][0]["cure"])
        self.assertIn("KillMode=mixed", found["stop_time"][1]["cure"])
        self.assertIn(os.path.basename(group), kit.read(
            self.path("asked")).decode())


@unittest.skipIf(os.environ.get("CKPTSYNC_E2E_REMOTE") == "s3",
                 "runs once, without a server")
@unittest.skipUnless(shutil.which("ip") and can_unshare(),
                     "no network namespaces here")
class Notices(Doctor):
    def within(self, way, *words, expect=None, environment=None):
        kit.write(self.path("inside"), INSIDE)
        kit.write(self.path("metadata"), METADATA)
        found = self.doctor(*words, expect=expect, environment=environment,
                            before=["unshare", "-rn", "sh",
                                    self.path("inside"), way,
                                    self.path("metadata")])
        return found

    def setUp(self):
        super().setUp()
        # What the firmware says goes before what is found.
        if any(word in self.firmware() for word in (
                "Amazon", "Google", "Alibaba", "Tencent", "7783-7084")):
            self.skipTest("this is a machine of a cloud")

    @staticmethod
    def firmware():
        text = ""
        for name in ("sys_vendor", "bios_vendor", "product_name",
                     "chassis_asset_tag"):
            try:
                text += kit.read("/sys/class/dmi/id/" + name).decode(
                    errors="replace")
            except OSError:
                pass
        return text

    def test_no_cloud_is_not_wrong(self):
        found = self.within("nothing", expect=0)
        self.only(found, "notices", "hint", "no cloud's metadata server",
                  ">--cloud none")

    def test_a_blocked_route(self):
        for way in ("prohibit", "unreachable", "blackhole"):
            found = self.within(way)
            self.only(found, "notices", "wrong", "is blocked",
                      "169.254.169.254", ">ip route get")
            if way == "blackhole":
                continue
            found = self.within(way, "--cloud", "aws")
            notices = self.only(found, "notices", "wrong", "AWS's",
                                "is blocked", ">a route or a firewall rule")
            self.assertEqual(notices["cause"], "blocked")

    def test_a_token_whose_answer_dies_on_its_way(self):
        """The hop limit: PUT hangs, a plain GET gives 401."""
        for words in ((), ("--cloud", "aws")):
            found = self.within("hops", *words)
            notices = self.only(found, "notices", "wrong", "AWS's",
                                "hop limit",
                                ">--http-put-response-hop-limit 2")
            self.assertEqual(notices["cause"], "hop limit")

    def test_keys_that_gke_hides(self):
        found = self.within("gke")
        self.only(found, "notices", "wrong", "Google Cloud's", "GKE",
                  ">hostNetwork: true")

    def test_requests_that_are_refused(self):
        """Something in between takes our header away, or says no."""
        found = self.within("filter", "--cloud", "google")
        notices = self.only(found, "notices", "wrong", "403")
        self.assertEqual(notices["cause"], "refused")
        found = self.within("filter", "--cloud", "azure")
        self.only(found, "notices", "wrong", "403")
        found = self.within("filter", expect=0)
        self.only(found, "notices", "hint", "like none of the clouds",
                  ">--cloud")

    def test_clouds_that_can_be_seen(self):
        found = self.within("aws", expect=0)
        notices = self.only(found, "notices", "ok", "AWS's")
        self.assertEqual((notices["source"], notices["window_s"]),
                         ("aws", 120.0))
        found = self.within("gce", "--gcp-notice", "120s", expect=0)
        notices = self.only(found, "notices", "ok", "Google Cloud's")
        self.assertEqual(notices["window_s"], 120.0)

    def test_a_notice_in_force(self):
        found = self.within("going")
        self.assertEqual([f["state"] for f in found["notices"]],
                         ["ok", "wrong"], str(self.done))
        self.assertIn("in force", found["notices"][1]["message"])

    def test_the_clouds_window_counts(self):
        os.mkdir(self.path("remote"))
        self.save("last.safetensors", 1)
        found = self.within("gce", self.folder, self.remote)
        self.assertIn("Google Cloud gives 30 s",
                      self.only(found, "fit", "ok")["message"])

    def test_switched_off(self):
        found = self.within("aws", "--cloud", "aws", environment={
            "AWS_EC2_METADATA_DISABLED": "true"})
        self.only(found, "notices", "wrong", "AWS_EC2_METADATA_DISABLED",
                  ">unset")

    def test_a_proxy(self):
        proxy = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "localhost",
                 "NO_PROXY": None}
        found = self.within("aws", expect=0, environment=proxy)
        self.only(found, "notices", "ok")
        self.only(found, "proxy", "hint", "http_proxy",
                  ">169.254.169.254 to no_proxy")
        for without in ("169.254.169.254", "localhost, 169.254.169.254",
                        "*", "169.254.0.0/16"):
            found = self.within("aws", expect=0, environment={
                **proxy, "no_proxy": without})
            self.only(found, "proxy", "ok")


@unittest.skipUnless(os.environ.get("CKPTSYNC_E2E_REMOTE") == "s3",
                     "needs a real server")
class Server(Doctor):
    """A real S3 server."""
    def setUp(self):
        super().setUp()
        for name in KEYS:
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def test_nothing_is_wrong(self):
        self.save("last.safetensors", 1)
        found = self.doctor("--cloud", "none", self.folder, self.remote,
                            expect=0)
        for check in ("remote", "credentials", "clock", "objects",
                      "listings", "contents", "fit"):
            self.only(found, check, "ok")
        # Nobody takes what doctor did for a run.
        self.run_program("list", self.remote, expect=3)
        self.push()
        found = self.doctor("--cloud", "none", self.folder, self.remote,
                            expect=0)
        self.only(found, "contents", "ok", "1 valid checkpoint",
                  "last.safetensors")

    def test_wrong_keys(self):
        for name, value, code in (
                ("AWS_SECRET_ACCESS_KEY", "wrong", "SignatureDoesNotMatch"),
                ("AWS_ACCESS_KEY_ID", "nobody", "InvalidAccessKeyId")):
            found = self.doctor("--cloud", "none", self.remote,
                                environment={name: value})
            self.only(found, "credentials", "wrong", code, "the environment",
                      ">check the access key")
            self.nothing_else_is_wrong(found, "credentials")

    def test_no_such_bucket(self):
        found = self.doctor("--cloud", "none", "s3://ckptsync-no-such/run")
        self.only(found, "remote", "wrong", "ckptsync-no-such",
                  "NoSuchBucket", ">make the bucket")


if __name__ == "__main__":
    kit.main()
