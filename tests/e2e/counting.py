"""A proxy that counts what a server sends, by the kind of object.

It passes on each request and answer as they are, so signatures stay right;
HTTP/1.1 with Content-Length or chunked bodies, one thread a connection.
"""
import socket
import threading
import urllib.parse


class Counting:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        assert parts.scheme == "http", url
        self.server = parts.hostname, parts.port or 80
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.reset()
        threading.Thread(target=self.accept, daemon=True).start()

    def reset(self):
        with self.lock:
            self.chunk_bytes = 0    # bodies of chunks
            self.other_bytes = 0    # manifests, listings
            self.chunk_gets = 0

    def stop(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,),
                             daemon=True).start()

    def serve(self, client):
        try:
            with client, socket.create_connection(self.server) as server:
                for each in client, server:
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ours, theirs = client.makefile("rb"), server.makefile("rb")
                while self.exchange(ours, theirs, client, server):
                    pass
        except OSError:
            pass

    def exchange(self, ours, theirs, client, server):
        first, fields = self.head(ours, server)
        if first is None:
            return False
        self.body(ours, server, fields, lambda length: None)
        method, target = first.split()[:2]
        chunk = b"/chunks/" in target and method == b"GET"

        def count(length):
            with self.lock:
                if chunk:
                    self.chunk_bytes += length
                else:
                    self.other_bytes += length

        status, fields = self.head(theirs, client)
        while status is not None and status.split()[1] == b"100":
            status, fields = self.head(theirs, client)
        if status is None:
            return False
        if chunk:
            with self.lock:
                self.chunk_gets += 1
        if method != b"HEAD" and status.split()[1] not in (b"204", b"304"):
            self.body(theirs, client, fields, count)
        return fields.get(b"connection", b"").lower() != b"close"

    @staticmethod
    def head(source, target):
        """Pass on a head; its first line and fields, or None at the end."""
        first = source.readline()
        if not first:
            return None, {}
        lines, fields = [first], {}
        while True:
            line = source.readline()
            lines.append(line)
            if line in (b"\r\n", b"\n", b""):
                break
            name, _, value = line.partition(b":")
            fields[name.strip().lower()] = value.strip()
        target.sendall(b"".join(lines))
        return first, fields

    @staticmethod
    def body(source, target, fields, count):
        def copy(length):
            while length:
                data = source.read(min(length, 1 << 18))
                if not data:
                    raise OSError("cut")
                target.sendall(data)
                count(len(data))
                length -= len(data)

        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            while True:
                line = source.readline()
                target.sendall(line)
                length = int(line.split(b";")[0], 16)
                copy(length)
                end = source.readline()
                target.sendall(end)
                if length == 0:
                    return
        copy(int(fields.get(b"content-length", b"0")))
