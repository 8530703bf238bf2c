"""Another reader of format 1, for a remote that lies on a disk.

Written from ckptsync-format(5) and not from the program, so that the two can
be held against each other; and a writer of manifests that no agent would
write.
"""
import hashlib
import json
import os
import re

TERM = re.compile(r"term-(\d{8})-[0-9a-f]{16}")
MANIFEST = re.compile(r"(\d{10})-([0-9a-f]{64})\.json")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Remote:
    def __init__(self, url):
        assert url.startswith("file://")
        self.folder = url[len("file://"):]

    def get(self, key):
        with open(self.path(key), "rb") as f:
            return f.read()

    def path(self, key):
        """On a disk the chunks are spread over folders by two hex digits."""
        match = re.fullmatch(r"(.*/chunks/\d{10})/([0-9a-f]{2})([0-9a-f]{62})",
                             key)
        if match:
            key = f"{match[1]}/{match[2]}/{match[2]}{match[3]}"
        return os.path.join(self.folder, key)

    def node(self, node=0):
        return f"node-{node:04}"

    def term(self, number=None):
        """The key of the highest open term, or of that number."""
        best = None
        for name in os.listdir(os.path.join(self.folder, self.node())):
            match = TERM.fullmatch(name)
            if match and os.path.exists(
                    self.path(f"{self.node()}/{name}/open.json")):
                if number is not None and int(match[1]) != number:
                    continue
                if best is None or int(match[1]) > best[0]:
                    best = int(match[1]), f"{self.node()}/{name}"
        assert best, "no open term"
        return best[1]

    def manifests(self, term):
        """Keys of a term's manifests, oldest first."""
        folder = f"{term}/checkpoints"
        names = os.listdir(self.path(folder)) \
            if os.path.isdir(self.path(folder)) else []
        return [f"{folder}/{name}" for name in sorted(names)
                if MANIFEST.fullmatch(name)]

    def read(self, key):
        data = self.get(key)
        digest = MANIFEST.fullmatch(key.split("/")[-1])[2]
        assert sha256(data) == digest, f"{key} is damaged"
        return json.loads(data)

    def newest(self):
        return self.manifests(self.term())[-1]

    def by_id(self, text):
        """The manifest of "3-17": term 3, attempt 17."""
        term, attempt = map(int, text.split("-"))
        for key in self.manifests(self.term(term)):
            if int(key.split("/")[-1][:10]) == attempt:
                return self.read(key)
        raise AssertionError(f"{text} has no manifest")

    def chunk(self, manifest, index):
        chunk = manifest["chunks"][index]
        data = self.get(chunk["key"])
        assert sha256(data) == chunk["key"][-64:], chunk
        assert len(data) == chunk["size_bytes"], chunk
        return data

    def files(self, manifest):
        """path -> bytes of every file of a checkpoint."""
        cache, found = {}, {}
        for entry in manifest["entries"]:
            if entry["kind"] == "hard_link":
                found[entry["path"]] = found[entry["target"]]
            if entry["kind"] != "file":
                continue
            parts = []
            for index, offset, length, *_ in entry["extents"]:
                if index not in cache:
                    cache[index] = self.chunk(manifest, index)
                parts.append(cache[index][offset:offset + length])
            found[entry["path"]] = b"".join(parts)
            assert len(found[entry["path"]]) == entry["size_bytes"]
        return found

    def replace_newest(self, change):
        """Change the newest manifest and name it as it then must be named."""
        old = self.newest()
        manifest = self.read(old)
        change(manifest)
        data = json.dumps(manifest).encode()
        folder, name = os.path.split(old)
        new = f"{folder}/{name[:10]}-{sha256(data)}.json"
        os.unlink(self.path(old))
        with open(self.path(new), "wb") as f:
            f.write(data)
        return new

    def damage(self, key, position=None):
        """Flip one bit."""
        with open(self.path(key), "r+b") as f:
            size = os.fstat(f.fileno()).st_size
            f.seek(size // 2 if position is None else position)
            byte = f.read(1)
            f.seek(-1, 1)
            f.write(bytes([byte[0] ^ 1]))
