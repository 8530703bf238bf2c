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
        began = time.monotonic()
        done = self.run_program(
            "restore", "--if-exists", NOWHERE, self.folder,
            environment=CLOSED, expect=1, patience=400)
        self.assertLess(time.monotonic() - began, 60)
        first, last = done.err.strip().splitlines()
        self.assertIn("does not answer", first)
        self.assertIn("trying again for up to 30 s", first)
        self.assertIn("127.0.0.1 port 9", last)


class Refusing(kit.Case):
    """A store that answers one request with an error, and then no more."""
    def serve(self, code, status, answers=10 ** 6):
        left = [answers]

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                left[0] -= 1
                if left[0] < 0:
                    time.sleep(8)
                    return
                body = (f"<Error><Code>{code}</Code><Message>said so"
                        "</Message></Error>").encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return dict(CLOSED, AWS_ENDPOINT_URL="http://127.0.0.1:"
                    f"{server.server_address[1]}")

    def test_the_last_real_failure_is_said(self):
        environment = self.serve("SignatureDoesNotMatch", 403, answers=1)
        done = self.run_program("push", self.folder, NOWHERE,
                                environment=environment, expect=1)
        last = done.err.strip().splitlines()[-1]
        self.assertIn("403 SignatureDoesNotMatch", last)
        self.assertIn("check the access key", last)

    def test_what_is_refused_is_not_tried_for_long(self):
        environment = self.serve("NoSuchBucket", 404)
        began = time.monotonic()
        done = self.run_program(
            "run", "--cloud", "none", self.folder, NOWHERE, "--",
            "touch", self.path("started"), environment=environment,
            expect=1, patience=100)
        self.assertLess(time.monotonic() - began, 45)
        self.assertFalse(os.path.exists(self.path("started")))
        last = done.err.strip().splitlines()[-1]
        self.assertIn("NoSuchBucket", last)
        self.assertIn("make the bucket", last)


if __name__ == "__main__":
    kit.main()
