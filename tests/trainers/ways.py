"""Four ways in which trainers in the wild save and find their checkpoints.

A way's save() writes exactly as its model does; what it is about to write was
rehearsed outside the watched directory first, so that the journal knows the
hashes before the first byte lands.
"""
import json
import os
import re
import shutil
import time

import torch

import journal
import tensors


class Way:
    def __init__(self, folder, log):
        self.folder = folder
        self.log = log
        os.makedirs(folder, exist_ok=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def announce(self, name, training, rehearsal):
        """Journal the files that lie in `rehearsal`, then remove it."""
        files = {}
        for where, _, names in os.walk(rehearsal):
            for each in names:
                path = os.path.join(where, each)
                files[os.path.relpath(path, rehearsal)] = journal.digest(path)
        self.log.will_save(name, training.step, files)
        shutil.rmtree(rehearsal)

    def rehearsal(self):
        path = os.path.join(self.log.spool, "rehearsal")
        os.makedirs(path)
        return path


class InPlace(Way):
    """last.pt and best.pt, written over again and again."""
    def put(self, name, training):
        state = training.state()
        rehearsal = self.rehearsal()
        torch.save(state, os.path.join(rehearsal, name))
        self.announce(name, training, rehearsal)
        torch.save(state, self.path(name))
        self.log.saved(name, training.step)

    def save(self, training, better):
        self.put("last.pt", training)
        if better:
            self.put("best.pt", training)

    def find(self):
        path = self.path("last.pt")
        return path if os.path.exists(path) else None

    def load(self, path):
        return torch.load(path)


class Rename(InPlace):
    """last.pt under a temporary name, synced, then renamed into place."""
    def put(self, name, training):
        state = training.state()
        rehearsal = self.rehearsal()
        # The name of the file is also inside a torch zip.
        spool = os.path.join(rehearsal, name + ".tmp")
        torch.save(state, spool)
        os.rename(spool, os.path.join(rehearsal, name))
        self.announce(name, training, rehearsal)
        torch.save(state, self.path(name + ".tmp"))
        with open(self.path(name + ".tmp"), "rb+") as f:
            os.fsync(f.fileno())
        os.replace(self.path(name + ".tmp"), self.path(name))
        self.log.saved(name, training.step)


class HuggingFace(Way):
    """checkpoint-N/ as the Trainer of transformers writes it: weights,
    optimizer, scheduler, random states, and trainer_state.json last; the two
    newest stay.  TensorBoard event files and a csv grow beside them."""
    keep = 2

    def __init__(self, folder, log):
        super().__init__(folder, log)
        os.makedirs(self.path("runs"), exist_ok=True)
        events = f"runs/events.out.tfevents.{int(time.time())}.{log.life}"
        self.grow(events, b"")
        self.events = events

    def grow(self, name, data):
        """Append to a companion; the journal's copy is always ahead."""
        shadow, path = self.log.shadow(name), self.path(name)
        if not os.path.exists(shadow) and os.path.exists(path):
            shutil.copyfile(path, shadow)
        for each in shadow, path:
            with open(each, "ab") as f:
                f.write(data)

    def note(self, training):
        self.grow("results.csv",
                  f"{training.step},{training.loss:.6f}\n".encode())
        self.grow(self.events, os.urandom(200))

    def weights(self, training):
        return {name: ("F32", tensor.shape, tensor.numpy().tobytes())
                for name, tensor in training.model.state_dict().items()}

    def write(self, folder, training):
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(tensors.layout(self.weights(training), {"format": "pt"}))
            for _, _, data in self.weights(training).values():
                f.write(data)
        torch.save(training.optimizer.state_dict(),
                   os.path.join(folder, "optimizer.pt"))
        torch.save(training.scheduler.state_dict(),
                   os.path.join(folder, "scheduler.pt"))
        torch.save(training.generators(),
                   os.path.join(folder, "rng_state.pth"))
        with open(os.path.join(folder, "trainer_state.json"), "w",
                  encoding="utf-8") as f:
            json.dump(training.place() | {"global_step": training.step}, f)

    def all(self):
        found = []
        for name in os.listdir(self.folder):
            match = re.fullmatch(r"checkpoint-(\d+)", name)
            if match:
                found.append((int(match[1]), name))
        return [name for _, name in sorted(found)]

    def save(self, training, _better):
        name = f"checkpoint-{training.step}"
        rehearsal = self.rehearsal()
        os.makedirs(os.path.join(rehearsal, name))
        self.write(os.path.join(rehearsal, name), training)
        self.announce(name, training, rehearsal)
        os.makedirs(self.path(name), exist_ok=True)
        self.write(self.path(name), training)
        self.log.saved(name, training.step)
        for old in self.all()[:-self.keep]:
            shutil.rmtree(self.path(old))

    def find(self):
        # As transformers' get_last_checkpoint: the highest number, whatever
        # is in it.
        names = self.all()
        return self.path(names[-1]) if names else None

    def load(self, path):
        with open(os.path.join(path, "model.safetensors"), "rb") as f:
            packed = tensors.unpack(f.read())
        model = {name: torch.frombuffer(bytearray(data), dtype=torch.float32)
                 .reshape(shape) for name, (_, shape, data) in packed.items()}
        with open(os.path.join(path, "trainer_state.json"),
                  encoding="utf-8") as f:
            place = json.load(f)
        return {"model": model, "place": place,
                "optimizer": torch.load(os.path.join(path, "optimizer.pt")),
                "scheduler": torch.load(os.path.join(path, "scheduler.pt")),
                "generators": torch.load(os.path.join(path, "rng_state.pth"))}


class Lightning(Way):
    """epoch=N-step=M.ckpt with last.ckpt as a link to the newest."""
    keep = 2

    def all(self):
        found = []
        for name in os.listdir(self.folder):
            match = re.fullmatch(r"epoch=\d+-step=(\d+)\.ckpt", name)
            if match:
                found.append((int(match[1]), name))
        return [name for _, name in sorted(found)]

    def save(self, training, _better):
        name = f"epoch={training.epoch}-step={training.step}.ckpt"
        state = training.state()
        rehearsal = self.rehearsal()
        torch.save(state, os.path.join(rehearsal, name))
        self.announce(name, training, rehearsal)
        torch.save(state, self.path(name))
        # As Lightning's _link_checkpoint: away with the old, then the new.
        link = self.path("last.ckpt")
        if os.path.lexists(link):
            os.remove(link)
        os.symlink(name, link)
        self.log.saved(name, training.step)
        for old in self.all()[:-self.keep]:
            os.remove(self.path(old))

    def find(self):
        # Lightning starts with a warning and from zero when `last` is gone,
        # which would hide a lost checkpoint here: so fall back to the newest.
        if os.path.exists(self.path("last.ckpt")):
            return self.path("last.ckpt")
        names = self.all()
        return self.path(names[-1]) if names else None

    def load(self, path):
        return torch.load(path)


WAYS = {"in-place": InPlace, "rename": Rename, "hugging-face": HuggingFace,
        "lightning": Lightning}
