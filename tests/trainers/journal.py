"""What a trainer did, written down where ckptsync never looks.

A checkpoint's hashes are on disk here before its first byte reaches the
watched directory: whatever is found later, in the directory or in a remote,
must be one of these saves whole, or it is torn.
"""
import hashlib
import json
import os


def digest(path):
    result = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            result.update(block)
    return result.hexdigest()


class Journal:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.path = os.path.join(self.folder, "saves.jsonl")
        self.life = len([name for name in os.listdir(self.folder)
                         if name.startswith("life-")])
        # A rehearsal of each save lands here, to learn its hashes.
        self.spool = os.path.join(self.folder, f"life-{self.life}")
        os.makedirs(self.spool)

    def append(self, **facts):
        with open(self.path, "ab") as f:
            f.write(json.dumps(facts).encode() + b"\n")
            f.flush()
            os.fsync(f.fileno())

    def will_save(self, name, step, files):
        """`files` maps paths within the watched directory to hashes."""
        self.append(event="save", name=name, step=step, life=self.life,
                    files=files)

    def saved(self, name, step):
        self.append(event="saved", name=name, step=step, life=self.life)

    def shadow(self, name):
        """Where a growing companion's bytes go first."""
        return os.path.join(self.spool, name.replace("/", "__"))


def read(folder):
    """Every event, oldest first; a line that was cut by a kill is no event."""
    events = []
    try:
        with open(os.path.join(folder, "saves.jsonl"), "rb") as f:
            for line in f:
                if line.endswith(b"\n"):
                    events.append(json.loads(line))
    except FileNotFoundError:
        pass
    return events
