#!/usr/bin/python3
"""Write the fixtures of the format tests beside this file.

They are committed, so the tests need neither this script nor PyTorch.  Made
with Debian 12's python3-torch (1.13), python3-h5py and python3-numpy; what
PyTorch 1.13 cannot write (the layouts of 2.1 and later) is laid out by hand
after caffe2/serialize/inline_container.cc and torch/serialization.py.
"""
import io
import json
import os
import pickle
import struct
import tarfile
import zlib

import numpy as np
import torch

torch.manual_seed(1)


class Unknown:
    """A class of the user's, with a state of its own."""

    def __init__(self):
        self.history = [0.5, 0.25]
        self.scale = torch.ones(5)


def training():
    """A checkpoint as training loops write it."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.ones(8)).sum().backward()
        optimizer.step()
    base = torch.arange(100.0)
    return {
        "epoch": 3,
        "loss": [1.5, 2.0**70, -1, 10**30],
        "name": "größe",
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "view": base[10:20],
        "tied": [base, base],
        "half": torch.ones(3, dtype=torch.bfloat16),
        "empty": torch.empty(0),
        "flags": (True, False, None, {1, 2}, b"bytes"),
        "numpy": np.arange(3.0),
        "rng": torch.zeros(16, dtype=torch.uint8),
    }


def torch_files():
    torch.save(training(), "torch-1.13.pt")
    torch.save(training(), "torch-protocol-4.pt", pickle_protocol=4)
    torch.save({"user": Unknown(), "w": torch.ones(4)}, "torch-class.pt")
    torch.save({"a": torch.arange(50.0), "b": torch.ones(7).half()[2:]},
               "torch-legacy.pt", _use_new_zipfile_serialization=False)
    try:
        torch.save({"a": torch.ones(3), "f": lambda: 0}, "torch-failed.pt")
    except (AttributeError, pickle.PicklingError):
        pass


class Zip:
    """The zip that PyTorch's writer makes: stored, with data descriptors."""

    def __init__(self, prefix):
        self.prefix, self.bytes, self.directory, self.count = prefix, b"", b"", 0

    def add(self, name, data):
        name = (self.prefix + "/" + name).encode()
        start = len(self.bytes)
        pad = -(start + 30 + len(name) + 4) % 64
        extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
        local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 0, 0x0808, 0, 0, 0,
                            0, 0, 0, len(name), len(extra))
        crc = zlib.crc32(data)
        self.bytes += local + name + extra + data
        self.bytes += struct.pack("<IIII", 0x08074B50, crc, len(data), len(data))
        self.directory += struct.pack(
            "<IHHHHHHIIIHHHHHII", 0x02014B50, 0, 0, 0x0808, 0, 0, 0, crc,
            len(data), len(data), len(name), 0, 0, 0, 0, 0, start) + name
        self.count += 1

    def finish(self):
        at, size = len(self.bytes), len(self.directory)
        end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 0x31E, 45, 0, 0,
                            self.count, self.count, size, at)
        locator = struct.pack("<IIQI", 0x07064B50, 0, at + size, 1)
        end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, self.count,
                          self.count, size, at, 0)
        return self.bytes + self.directory + end64 + locator + end


def current_file(name, middle):
    """The layout of PyTorch 2.1 to 2.5 (${middle}), and of later ones."""
    buffer = io.BytesIO()
    value = {f"layer.{i}.weight": torch.full((20 + i,), float(i)) for i in range(12)}
    torch.save(value, buffer)
    import zipfile
    old = zipfile.ZipFile(io.BytesIO(buffer.getvalue()))
    new = Zip("archive")
    new.add("data.pkl", old.read("archive/data.pkl"))
    if not middle:
        new.add(".format_version", b"1")
        new.add(".storage_alignment", b"64")
    new.add("byteorder", b"little")
    keys = [str(i) for i in range(12)]
    for key in sorted(keys) if middle else keys:
        new.add("data/" + key, old.read("archive/data/" + key))
    new.add("version", b"3\n")
    new.add(".data/serialization_id", b"0" * 40)
    with open(name, "wb") as out:
        out.write(new.finish())


def safetensors_file(name, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for key, dtype, shape, content in tensors:
        header[key] = {"dtype": dtype, "shape": shape,
                       "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(name, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def other_files():
    import h5py

    safetensors_file("model.safetensors", [
        ("embed.weight", "F32", [10, 4], np.arange(40, dtype="<f4").tobytes()),
        ("head.größe", "BF16", [3, 5], bytes(range(1, 31))),
        ("empty", "F16", [0, 7], b""),
        ("scale", "F8_E4M3", [9], b"\x07" * 9),
    ], {"format": "pt", "note": "a \"quoted\" { brace"})
    for name, version in (("model-0.h5", "earliest"), ("model-3.h5", "latest")):
        with h5py.File(name, "w", libver=version) as out:
            out.create_dataset("w", data=np.arange(20.0), track_times=False)
    np.savez("weights.npz", a=np.arange(10), b=np.ones(30))
    np.savez_compressed("packed.npz", a=np.zeros(1000))
    with tarfile.open("model.nemo", "w:") as out:
        for name in ("model.safetensors", "weights.npz"):
            entry = tarfile.TarInfo(name)
            entry.size = os.path.getsize(name)
            with open(name, "rb") as content:
                out.addfile(entry, content)
    with open("trainer_state.json", "w") as out:
        json.dump({"global_step": 500, "log_history": [
            {"loss": 2.5, "step": 100}, {"loss": float("nan"), "step": 200}],
            "total_flos": 10**25}, out, indent=2)
    with open("model.safetensors.index.json", "w") as out:
        json.dump({"metadata": {"total_size": 12}, "weight_map": {
            "a": "model-00001-of-00002.safetensors",
            "b": "model-00002-of-00002.safetensors",
            "c": "model-00001-of-00002.safetensors"}}, out, indent=2)


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    torch_files()
    current_file("torch-2.4.pt", True)
    current_file("torch-2.8.pt", False)
    other_files()
