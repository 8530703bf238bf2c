#!/usr/bin/python3
"""Write the checkpoints that test_model.c takes weights from, and `expected`.

They are committed, so the tests need neither this script nor PyTorch.  Made
with Debian 12's python3-torch (1.13) and python3-h5py; what PyTorch 1.13
cannot write (torch.distributed.checkpoint, the records of 2.x) is laid out by
hand after torch/distributed/checkpoint/{metadata,filesystem}.py and
caffe2/serialize/inline_container.cc.

`expected` has a section for each way of reading a file or directory:

    read NAME [OPTION...]     options: ema, strip, key=K, include=G, exclude=G
    key K
    tensor NAME TYPE SHAPE SHA256   of its bytes in C order, the first half
    refused NAME: WHY
"""
import collections
import dataclasses
import enum
import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import sys
import tarfile
import types
import zipfile

import numpy as np
import torch

from make import Zip

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16",
    torch.int32: "I32", torch.int64: "I64", torch.float16: "F16",
    torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64",
    torch.complex64: "C64", torch.complex128: "C128"}


def bytes_of(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    if flat.numel() > 0:
        flat = flat.view(torch.uint8)
    return flat.numpy().tobytes()


class Expected:
    def __init__(self):
        self.lines = []

    def read(self, name, tensors, key="", options="", refused=()):
        self.lines.append(f"read {name} {options}".rstrip())
        self.lines.append(f"key {key}".rstrip())
        for label, tensor in tensors.items():
            digest = hashlib.sha256(bytes_of(tensor)).hexdigest()[:32]
            shape = ",".join(str(size) for size in tensor.shape) or "-"
            self.lines.append(f"tensor {label} {TYPES[tensor.dtype]} {shape} {digest}")
        self.lines += [f"refused {line}" for line in refused]


EXPECTED = Expected()


def prefixed(prefix, tensors):
    return collections.OrderedDict((prefix + name, tensor)
                                   for name, tensor in tensors.items())


def trained(dtype=torch.float32):
    """A small model after two steps of AdamW."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5),
                                torch.nn.Linear(5, 2, bias=False))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(4, 3)).sum().backward()
        optimizer.step()
    return model.to(dtype), optimizer


MODEL, OPTIMIZER = None, None


def frameworks():
    state, whole = MODEL.state_dict(), OPTIMIZER.state_dict()
    # The state of one parameter is enough to tell an optimizer by.
    optimizer = {"state": {0: whole["state"][0]},
                 "param_groups": whole["param_groups"]}
    ema = {name: tensor + 1 for name, tensor in state.items()}

    def save(name, value, tensors=state, key="", **how):
        torch.save(value, name, **how)
        EXPECTED.read(name, tensors, key)

    save("state.pt", state)
    save("state-4.pt", state, pickle_protocol=4)
    save("state-legacy.pt", state, _use_new_zipfile_serialization=False)
    save("lone.pt", torch.arange(6.0).reshape(2, 3),
         {"tensor": torch.arange(6.0).reshape(2, 3)})
    plain = {"epoch": 3, "model": state, "optimizer": whole,
             "rng_state": torch.zeros(16, dtype=torch.uint8)}
    save("training.pt", plain, key="model")
    save("training-4.pt", plain, key="model", pickle_protocol=4)
    save("training-legacy.pt", plain, key="model",
         _use_new_zipfile_serialization=False)
    lightning = prefixed("model.", state)
    save("lightning.ckpt", {
        "epoch": 1, "global_step": 2, "pytorch-lightning_version": "2.0",
        "state_dict": lightning, "loops": {"fit_loop": {"state_dict": {}}},
        "callbacks": {"EMA": {"w": torch.ones(2)}},
        "optimizer_states": [optimizer], "lr_schedulers": [{"last_epoch": 1}],
    }, lightning, "state_dict")
    EXPECTED.read("lightning.ckpt", state, "state_dict", "strip")
    EXPECTED.read("lightning.ckpt",
                  {name[2:]: t for name, t in state.items() if name.startswith("1.")},
                  "state_dict.model.1", "key=state_dict.model.1")
    EXPECTED.read("lightning.ckpt", {"model.2.weight": state["2.weight"]},
                  "state_dict", "include=*.weight exclude=model.[01].*")
    EXPECTED.read("lightning.ckpt", {"w": torch.ones(2)}, "callbacks.EMA",
                  "key=callbacks.EMA")
    save("mmengine.pth", {
        "meta": {"epoch": 1}, "state_dict": state,
        "message_hub": {"log": torch.ones(2)}, "optimizer": optimizer,
        "param_schedulers": [{"last": 1}]}, key="state_dict")
    save("timm.pth.tar", {
        "epoch": 1, "arch": "net", "state_dict": state, "optimizer": optimizer,
        "version": 2, "state_dict_ema": ema, "metric": 0.5,
        "amp_scaler": {"scale": torch.tensor(1.0)}}, key="state_dict")
    EXPECTED.read("timm.pth.tar", ema, "state_dict_ema", "ema")
    save("composer.pt", {
        "state": {"model": state, "optimizers": {"AdamW": optimizer}},
        "rng": [{"torch": torch.zeros(16, dtype=torch.uint8)}]}, key="state.model")
    save("deepspeed.pt", {
        "module": state, "buffer_names": ["1.running_mean"], "optimizer": None,
        "param_shapes": [collections.OrderedDict(w=torch.Size([3, 5]))],
        "ds_version": "0.14"}, key="module")
    nested = {"language_model": {"embedding": {"weight": torch.ones(3, 2)},
                                 "encoder": {"0.weight": state["0.weight"]}}}
    save("megatron.pt", {
        "args": None, "iteration": 5, "model": nested,
        "optimizer": {"optimizer": optimizer, "fp32_from_fp16": [torch.ones(2)]},
        "rng_state": [{"cuda": torch.zeros(8, dtype=torch.uint8)}]},
        {"language_model.embedding.weight": torch.ones(3, 2),
         "language_model.encoder.0.weight": state["0.weight"]}, "model")
    save("pipeline.pt", {"model0": state, "model1": ema, "optimizer": optimizer},
         {**prefixed("model0.", state), **prefixed("model1.", ema)})
    save("unknown.pt", {"my_net": state, "other": optimizer,
                        "best": torch.tensor(1.0)}, key="my_net")


def modules():
    """Whole modules, as YOLO has them, in both protocols."""
    model = torch.nn.Sequential(
        collections.OrderedDict(c=MODEL, tied=torch.nn.Linear(3, 5)))
    model.tied.weight = model.c[0].weight
    model.register_buffer("passing", torch.ones(2), persistent=False)
    state = model.state_dict()
    for protocol in 2, 4:
        name = f"yolo-{protocol}.pt"
        torch.save({"epoch": 2, "best_fitness": np.float64(0.25), "model": None,
                    "ema": model, "optimizer": OPTIMIZER.state_dict(),
                    "updates": 7, "train_args": {"lr": 0.1}}, name,
                   pickle_protocol=protocol)
        EXPECTED.read(name, state, "ema")
    torch.save(model, "module.pt")
    EXPECTED.read("module.pt", state)


def shapes_and_types():
    base = torch.arange(20.0)
    views = {
        "slice": base[5:9], "transposed": torch.arange(6).reshape(2, 3).t(),
        "stepped": base[::7], "tied": base, "again": base,
        "expanded": torch.ones(2, 1).expand(2, 3),
        "permuted": torch.randn(2, 3, 4).permute(2, 0, 1),
        "empty": torch.empty(0, 3), "scalar": torch.tensor(2.5),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        'a.b/c "quoted" \\ größe': torch.ones(2)}
    for dtype, name in TYPES.items():
        views[name] = torch.randn(2, 3).abs().mul(3).to(dtype)
    # Names in `expected` are words.
    views.pop('a.b/c "quoted" \\ größe')
    views["a.b/c\"\\größe"] = torch.ones(2)
    for name, legacy in ("views.pt", False), ("views-legacy.pt", True):
        torch.save(views, name, _use_new_zipfile_serialization=not legacy)
        EXPECTED.read(name, views)
    torch.save({
        "w": torch.ones(3),
        "q": torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8),
        "s": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr(),
        "nul\0name": torch.ones(1)}, "refused.pt")
    EXPECTED.read("refused.pt", {"w": torch.ones(3)}, refused=[
        "q: it is quantised", "s: it is sparse", "csr: it is sparse",
        "nul: its name holds a NUL"])


def newer_torch():
    """Tensors that 1.13 has no type for, in the records of 2.8."""
    types_of = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
                "uint16": "U16", "uint32": "U32", "uint64": "U64"}
    widths = {"U16": 2, "U32": 4, "U64": 8}
    out = Zip("archive")
    head = b"\x80\x02}(X\x07\0\0\0unknownK\x05"
    storages, lines = [], []
    for key, (dtype, name) in enumerate(types_of.items()):
        content = bytes(range(key, key + 6 * widths.get(name, 1)))
        text = name.encode()
        head += b"X" + struct.pack("<I", len(text)) + text
        head += b"ctorch._utils\n_rebuild_tensor_v3\n((X\x07\0\0\0storage"
        head += b"ctorch.storage\nUntypedStorage\nX\x01\0\0\0" + str(key).encode()
        head += b"X\x03\0\0\0cpuK" + bytes([len(content)]) + b"tQK\0K\x02K\x03\x86"
        head += b"K\x03K\x01\x86\x89ccollections\nOrderedDict\n)Rctorch\n"
        head += dtype.encode() + b"\ntR"
        storages.append(content)
        digest = hashlib.sha256(content).hexdigest()[:32]
        lines.append(f"tensor {name} {name} 2,3 {digest}")
    out.add("data.pkl", head + b"u.")
    out.add(".format_version", b"1")
    out.add(".storage_alignment", b"64")
    out.add("byteorder", b"little")
    for key, content in enumerate(storages):
        out.add(f"data/{key}", content)
    out.add("version", b"3\n")
    out.add(".data/serialization_id", b"0" * 40)
    with open("torch-2.8-types.pt", "wb") as file:
        file.write(out.finish())
    EXPECTED.lines += ["read torch-2.8-types.pt", "key", *lines]


# torch.distributed.checkpoint, as far as its pickles go.
def make_class(module, name, fields, frozen=False, **members):
    made = dataclasses.make_dataclass(name, fields, frozen=frozen,
                                      namespace=members)
    made.__module__, made.__qualname__ = module.__name__, name
    setattr(module, name, made)
    return made


REAL = {}  # what the made modules stand before


def make_module(name):
    REAL[name] = sys.modules.get(name)
    sys.modules[name] = types.ModuleType(name)
    return sys.modules[name]


make_module("torch.distributed.checkpoint")
METADATA = make_module("torch.distributed.checkpoint.metadata")
FILESYSTEM = make_module("torch.distributed.checkpoint.filesystem")


class Encoding(enum.Enum):
    TORCH_CONTIGUOUS_FORMAT = 0


Encoding.__module__ = METADATA.__name__
Encoding.__qualname__ = Encoding.__name__ = "_MEM_FORMAT_ENCODING"
METADATA._MEM_FORMAT_ENCODING = Encoding
Chunk = make_class(METADATA, "ChunkStorageMetadata", ["offsets", "sizes"])
Properties = make_class(
    METADATA, "TensorProperties", ["dtype"],
    __getstate__=lambda self: (self.dtype, torch.strided, False,
                               Encoding.TORCH_CONTIGUOUS_FORMAT, False))
TensorStorage = make_class(METADATA, "TensorStorageMetadata",
                           ["properties", "size", "chunks"])
BytesStorage = make_class(METADATA, "BytesStorageMetadata", [])
Index = make_class(METADATA, "MetadataIndex",
                   [("fqn", str), ("offset", object, None),
                    ("index", object, None)], frozen=True)
Metadata = make_class(METADATA, "Metadata",
                      ["state_dict_metadata", "planner_data", "storage_data"])
Info = make_class(FILESYSTEM, "_StorageInfo",
                  ["relative_path", "offset", "length"])


class Distributed:
    """A checkpoint of two ranks; `cut` says along which dimensions."""

    def __init__(self, folder, ways=None, records=False):
        self.folder, self.ways, self.records = folder, ways, records
        self.files = {"__0_0.distcp": b"", "__1_0.distcp": b""}
        self.tensors, self.places = {}, {}
        os.makedirs(folder)

    def blob(self, tensor):
        buffer = io.BytesIO()
        torch.save(tensor, buffer)
        if not self.records:
            return buffer.getvalue()
        old = zipfile.ZipFile(buffer)
        new = Zip("archive")
        new.add("data.pkl", old.read("archive/data.pkl"))
        for name, text in ((".format_version", b"1"),
                           (".storage_alignment", b"64"), ("byteorder", b"little")):
            new.add(name, text)
        new.add("data/0", old.read("archive/data/0"))
        new.add("version", b"3\n")
        new.add(".data/serialization_id", b"0" * 40)
        return new.finish()

    def put(self, rank, index, blob):
        name = f"__{rank}_0.distcp"
        self.places[index] = Info(name, len(self.files[name]), len(blob))
        self.files[name] += blob

    def add(self, name, tensor, cut=(0,)):
        boxes = [([0] * tensor.dim(), list(tensor.shape))]
        for dimension in cut:
            if dimension >= tensor.dim():
                continue
            halves = []
            for start, size in boxes:
                half = (size[dimension] + 1) // 2
                low, high, rest = list(size), list(size), list(start)
                low[dimension], high[dimension] = half, size[dimension] - half
                rest[dimension] += half
                halves += [(start, low), (rest, high)]
            boxes = halves
        chunks = []
        for number, (start, size) in enumerate(boxes):
            part = tensor[tuple(slice(a, a + n) for a, n in zip(start, size))]
            offset = torch.Size(start)
            chunks.append(Chunk(offset, torch.Size(size)))
            self.put(number % 2, Index(name, offset, number),
                     self.blob(part.clone().contiguous()))
        self.tensors[name] = TensorStorage(Properties(tensor.dtype),
                                           tensor.shape, chunks)

    def add_object(self, name):
        self.tensors[name] = BytesStorage()
        self.put(0, Index(name), b"any bytes")

    def finish(self):
        for name, content in self.files.items():
            with open(f"{self.folder}/{name}", "wb") as out:
                out.write(content)
        with open(f"{self.folder}/.metadata", "wb") as out:
            pickle.dump(Metadata(self.tensors, self.ways, self.places), out)


def distributed():
    weights = {"layer.weight": torch.randn(5, 4), "layer.bias": torch.randn(5),
               "embedding": torch.randn(4, 3).bfloat16(), "step": torch.tensor(3)}
    moments = {"layer.bias.exp_avg": weights["layer.bias"] + 1}

    def write(folder, model, optimizer, tensors, key, nested=False, **how):
        ways = {**{model + name: (*model.split(".")[:-1], name) for name in weights},
                **{optimizer + name: (*optimizer.split(".")[:-1], name)
                   for name in moments}} if nested else None
        out = Distributed(folder, ways, **how)
        for name, tensor in weights.items():
            out.add(model + name, tensor, (0, 1) if name == "layer.weight" else (0,))
        for name, tensor in moments.items():
            out.add(optimizer + name, tensor)
        out.add_object("lr_scheduler.state")
        out.finish()
        EXPECTED.read(folder, tensors, key)

    write("torchtitan", "model.", "optimizer.state.", weights, "model", True,
          records=True)
    write("fsdp", "model.", "optimizer.state.", prefixed("model.", weights), "model")
    EXPECTED.read("fsdp", weights, "model", "strip")
    write("megatron-dist", "decoder.", "chained_0.optimizer.state.",
          prefixed("decoder.", weights), "")
    write("composer-dist", "state.model.", "state.optimizers.", weights,
          "state.model", True)
    EXPECTED.read("composer-dist", {"exp_avg": moments["layer.bias.exp_avg"]},
                  "state.optimizers.layer.bias", "key=state.optimizers.layer.bias")


def safetensors_bytes(tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        content = bytes_of(tensor)
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def directories():
    state = MODEL.state_dict()
    halves = [dict(list(state.items())[:5]), dict(list(state.items())[5:])]
    for folder, ending, first, write in (
            ("hf", "safetensors", "model", lambda name, part: open(name, "wb").write(
                safetensors_bytes(part))),
            ("hf-bin", "bin", "pytorch_model", lambda name, part: torch.save(part, name))):
        os.makedirs(folder)
        names = [f"{first}-0000{n}-of-00002.{ending}" for n in (1, 2)]
        for name, part in zip(names, halves):
            write(f"{folder}/{name}", part)
        index = {"metadata": {}, "weight_map": {
            key: name for name, part in zip(names, halves) for key in part}}
        with open(f"{folder}/{first}.{ending}.index.json", "w") as out:
            json.dump(index, out)
        torch.save({"state": {}, "param_groups": []}, f"{folder}/optimizer.pt")
        with open(f"{folder}/config.json", "w") as out:
            out.write("{}")
        EXPECTED.read(folder, state)
    torch.save(state, "member.ckpt")
    with tarfile.open("model.nemo", "w:") as out:
        for name, path in (("./model_config.yaml", "hf/config.json"),
                           ("./model_weights.ckpt", "member.ckpt")):
            entry = tarfile.TarInfo(name)
            entry.size = os.path.getsize(path)
            with open(path, "rb") as content:
                out.addfile(entry, content)
    os.remove("member.ckpt")
    EXPECTED.read("model.nemo", state)


def keras():
    import h5py

    def write(name, optimizer, version):
        with h5py.File(name, "w", libver=version) as out:
            out.create_dataset("layers/dense/vars/0", data=np.ones((2, 3)),
                               track_times=False)
            if optimizer:
                out.create_dataset("optimizer/vars/0", data=np.ones(3),
                                   track_times=False)
    write("plain.weights.h5", False, "earliest")
    write("trained.weights.h5", True, "earliest")
    write("new.weights.h5", True, "latest")
    with zipfile.ZipFile("model.keras", "w") as out:
        for name, data in (("metadata.json", b"{}"), ("config.json", b"{}"),
                           ("model.weights.h5", open("new.weights.h5", "rb").read())):
            out.writestr(zipfile.ZipInfo(name), data)


def numbers():
    """Numbers with what numpy makes of them: f64, then f32 and f16 of it, and
    f16 of the f32."""
    random = np.random.default_rng(1)
    bits = random.integers(0, 2**64, 120, dtype=np.uint64).view(np.float64)
    near = (random.standard_normal(120) * np.exp2(random.integers(-30, 20, 120)))
    edges = np.array([0.0, -0.0, np.inf, -np.inf, 65504, 65519.99, 65520, 2.0**-24,
                      2.0**-25, 2.0**-25 * 1.0001, 2.0**-14, 1 + 2.0**-11,
                      1 + 3 * 2.0**-11, 3.4028235677973366e38, 1e-45, 7e-46])
    wide = np.concatenate([bits[~np.isnan(bits)], near, edges])
    with np.errstate(over="ignore", under="ignore"), open("numbers", "wb") as out:
        for value in wide:
            single = np.float32(value)
            out.write(struct.pack("<d", value) + single.tobytes() +
                      np.float16(value).tobytes() + np.float16(single).tobytes())


def main():
    global MODEL, OPTIMIZER
    shutil.rmtree(f"{HERE}/weights", ignore_errors=True)
    os.makedirs(f"{HERE}/weights")
    os.chdir(f"{HERE}/weights")
    torch.manual_seed(1)
    MODEL, OPTIMIZER = trained()
    for make in (frameworks, modules, shapes_and_types, newer_torch, distributed,
                 directories, keras, numbers):
        make()
    with open("expected", "w") as out:
        out.write("\n".join(EXPECTED.lines) + "\n")


if __name__ == "__main__":
    main()
