"""Checkpoints as frameworks write them, for the tests of `weights`.

Each shape is a function that writes its files into a folder and says what the
model in it is: name -> torch tensor.  Sizes are such that what must not be
fetched is far more than what may be fetched besides.
"""
import collections
import enum
import io
import json
import os
import pickle
import struct
import sys
import types
import zipfile

import torch

import tensors

WIDTH = 1152
Shape = collections.namedtuple("Shape", "name model options")


class Block(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.norm = torch.nn.BatchNorm1d(hidden)
        self.down = torch.nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.norm(self.up(x))))


def network(seed=1, width=WIDTH):
    """Matrices that are longer than a chunk, and short ones."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(collections.OrderedDict(
        (f"block{i}", Block(width, hidden))
        for i, hidden in enumerate((2 * width, width // 8))))


def trained(model, kind=torch.optim.AdamW):
    optimizer = kind(model.parameters(), lr=1e-3)
    width = next(model.parameters()).shape[1]
    model(torch.randn(4, width)).square().mean().backward()
    optimizer.step()
    return optimizer


def save(value, path, **how):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(value, path, **how)


def state(model):
    return dict(model.state_dict())


# One file, with what the framework puts beside the model.

def plain(folder):
    model = network()
    save(model.state_dict(), f"{folder}/model.pt")
    return Shape("model.pt", state(model), [])


def training(folder, **how):
    model = network()
    optimizer = trained(model)
    save({"epoch": 3, "model": model.state_dict(),
          "optimizer": optimizer.state_dict(), "losses": [0.1] * 100},
         f"{folder}/last.pt", **how)
    return Shape("last.pt", state(model), [])


def protocol_4(folder):
    return training(folder, pickle_protocol=4)


def legacy(folder):
    return training(folder, _use_new_zipfile_serialization=False)


def optimizer_first(folder):
    model = network()
    save({"optimizer": trained(model).state_dict(),
          "model_state_dict": model.state_dict()}, f"{folder}/last.pth")
    return Shape("last.pth", state(model), [])


def lightning(folder):
    model = network()
    optimizer = trained(model)
    names = collections.OrderedDict(
        ("model." + name, value) for name, value in state(model).items())
    save({"epoch": 1, "global_step": 20,
          "pytorch-lightning_version": "1.9.0", "state_dict": names,
          "loops": {"fit_loop": {"state_dict": {}}},
          "callbacks": {"ModelCheckpoint": {
              "best_model_score": torch.tensor(0.5),
              "best_k_models": {}}},
          "optimizer_states": [optimizer.state_dict()],
          "lr_schedulers": [{"last_epoch": 1}], "hparams_name": "kwargs",
          "hyper_parameters": {"lr": 1e-3}},
         f"{folder}/epoch=1-step=20.ckpt")
    return Shape("epoch=1-step=20.ckpt", state(model), ["--strip-prefix"])


def mmengine(folder):
    model = network()
    save({"meta": {"epoch": 2, "cfg": "x = 1\n" * 500},
          "state_dict": model.state_dict(),
          "message_hub": {"log_scalars": {}, "resumed_keys": {}},
          "optimizer": trained(model, torch.optim.Adam).state_dict(),
          "param_schedulers": [{"last_step": 2}]}, f"{folder}/epoch_2.pth")
    return Shape("epoch_2.pth", state(model), [])


def timm(folder):
    model, averaged = network(), network(2)
    save({"epoch": 4, "arch": "vit", "state_dict": model.state_dict(),
          "optimizer": trained(model).state_dict(), "version": 2,
          "amp_scaler": {"scale": 65536.0}, "metric": 71.5,
          "state_dict_ema": averaged.state_dict()},
         f"{folder}/checkpoint-4.pth.tar")
    return Shape("checkpoint-4.pth.tar", state(model), [])


def timm_averaged(folder):
    model, averaged = network(), network(2)
    shape = timm(folder)
    del model
    return shape._replace(model=state(averaged), options=["--ema"])


def composer(folder):
    model = network()
    save({"state": {"model": model.state_dict(),
                    "optimizers": {"AdamW": trained(model).state_dict()},
                    "schedulers": {"C": {"last_epoch": 1}},
                    "run_name": "x"},
          "rng": [{"python": [3, (1, 2), None],
                   "torch": torch.get_rng_state()}]},
         f"{folder}/ep1-ba20-rank0.pt")
    return Shape("ep1-ba20-rank0.pt", state(model), [])


def yolo(folder):
    """Pickled modules: no model, the averaged one in half precision."""
    model = network().half()
    optimizer = {"state": {i: {"momentum_buffer": p.detach().clone()}
                           for i, p in enumerate(model.parameters())},
                 "param_groups": [{"lr": 0.01, "params": [0, 1]}]}
    save({"epoch": 5, "best_fitness": 0.3, "model": None, "ema": model,
          "updates": 100, "optimizer": optimizer,
          "train_args": {"imgsz": 640}, "date": "2026-11-30"},
         f"{folder}/weights/last.pt")
    return Shape("weights/last.pt", state(model), [])


def whole_module(folder):
    model = network()
    save(model, f"{folder}/module.pt")
    return Shape("module.pt", state(model), [])


def nearly_all_types(folder):
    torch.manual_seed(3)
    wide = torch.randn(1 << 18)
    model = collections.OrderedDict(
        (str(kind).split(".")[1], (wide * 50).to(kind))
        for kind in (torch.float32, torch.float64, torch.float16,
                     torch.bfloat16, torch.int64, torch.int32, torch.int16,
                     torch.int8, torch.uint8, torch.bool))
    model["complex64"] = torch.complex(wide, wide + 1)
    model["scalar"] = torch.tensor(7.5)
    model["empty"] = torch.empty(0, 3)
    noise = {"state": {i: {"exp_avg": torch.randn(1 << 20)}
                       for i in range(8)},
             "param_groups": [{"params": list(range(8))}]}
    save({"state_dict": model, "optimizer": noise}, f"{folder}/types.pt")
    return Shape("types.pt", dict(model), [])


def strided(folder):
    torch.manual_seed(4)
    base = torch.randn(1500, 2000)
    cube = torch.randn(64, 96, 128)
    model = collections.OrderedDict(
        whole=base, transposed=base.t(), columns=base[:, 100:1900],
        steps=base[::3, ::7], tied=base, row=base[7],
        permuted=cube.permute(2, 0, 1), inner=cube[:, 5, :],
        expanded=torch.randn(1, 500).expand(300, 500),
        corner=cube[1:3, 2:4, 3:5], one=cube[3, 4, 5])
    noise = {"state": {0: {"exp_avg": torch.randn(3000, 4000)}},
             "param_groups": [{"params": [0]}]}
    save({"model": model, "optimizer": noise}, f"{folder}/strided.pt")
    return Shape("strided.pt", dict(model), [])


def many_small(folder):
    """Tensors that share a hash with their neighbours, which torch before
    2.6 sorts as strings: the optimizer's are among them."""
    torch.manual_seed(5)
    model = collections.OrderedDict(
        (f"layer.{i}.weight", torch.randn(2000 + i)) for i in range(600))
    optimizer = {"state": {i: {"exp_avg": torch.randn(2000 + i),
                               "exp_avg_sq": torch.randn(2000 + i)}
                           for i in range(600)},
                 "param_groups": [{"params": list(range(600))}]}
    save({"model": model, "optimizer": optimizer}, f"{folder}/small.pt")
    return Shape("small.pt", dict(model), [])


def new_torch(folder, make=training):
    """The records, their order and places as torch 2.8 writes them."""
    old = f"{folder}/old"
    shape = make(old)
    with zipfile.ZipFile(f"{old}/{shape.name}") as given:
        records = {name.split("/", 1)[1]: given.read(name)
                   for name in given.namelist()}
    os.unlink(f"{old}/{shape.name}")
    os.rmdir(old)
    order = ["data.pkl", ".format_version", ".storage_alignment", "byteorder"]
    order += [f"data/{i}" for i in range(sum(
        name.startswith("data/") for name in records))]
    order += ["version", ".data/serialization_id"]
    records |= {".format_version": b"1", ".storage_alignment": b"64",
                "byteorder": b"little",
                ".data/serialization_id": b"1234567890" * 4}
    with open(f"{folder}/{shape.name}", "wb") as f, \
            zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as made:
        for name in order:
            info = zipfile.ZipInfo("last/" + name, (1980, 0, 0, 0, 0, 0))
            gap = -(f.tell() + 30 + len(info.filename) + 4) % 64
            info.extra = struct.pack("<HH", 0x4246, gap) + b"Z" * gap
            made.writestr(info, records[name])
    return shape


def many_small_in_order(folder):
    return new_torch(folder, many_small)


ONE_FILE = [plain, training, protocol_4, legacy, optimizer_first, lightning,
            mmengine, timm, timm_averaged, composer, yolo, whole_module,
            nearly_all_types, strided, many_small, new_torch,
            many_small_in_order]


# Directories.

def numbers(tensor):
    kinds = {torch.float32: "F32", torch.float16: "F16", torch.int64: "I64",
             torch.bfloat16: "BF16"}
    return (kinds[tensor.dtype], tensor.shape,
            tensor.contiguous().view(torch.uint8).numpy().tobytes()
            if tensor.dim() else
            tensor.reshape(1).view(torch.uint8).numpy().tobytes())


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def hugging_face(folder, name="checkpoint-20"):
    model = network()
    optimizer = trained(model)
    where = f"{folder}/{name}"
    values = state(model)
    names = sorted(values)
    shards = names[:len(names) // 2], names[len(names) // 2:]
    index = {}
    for number, each in enumerate(shards, 1):
        file = f"model-{number:05}-of-00002.safetensors"
        os.makedirs(where, exist_ok=True)
        with open(f"{where}/{file}", "wb") as f:
            f.write(tensors.pack({key: numbers(values[key]) for key in each},
                                 {"format": "pt"}))
        index |= {key: file for key in each}
    write_text(f"{where}/model.safetensors.index.json", json.dumps(
        {"metadata": {"total_size": 1}, "weight_map": index}))
    for each in "config.json", "generation_config.json", "tokenizer.json", \
            "tokenizer_config.json", "special_tokens_map.json":
        write_text(f"{where}/{each}", json.dumps({"name": each}))
    write_text(f"{where}/vocab.txt", "a\nb\n")
    save(optimizer.state_dict(), f"{where}/optimizer.pt")
    save({"last_epoch": 1}, f"{where}/scheduler.pt")
    save({"cpu": torch.get_rng_state()}, f"{where}/rng_state.pth")
    save({"lr": 1}, f"{where}/training_args.bin")
    write_text(f"{where}/trainer_state.json", '{"global_step": 20}')
    return Shape(name, values, [])


HUGGING_FACE_WEIGHTS = [
    "config.json", "generation_config.json",
    "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
    "model.safetensors.index.json", "special_tokens_map.json",
    "tokenizer.json", "tokenizer_config.json", "vocab.txt"]


def deepspeed(folder):
    model = network()
    tag = f"{folder}/global_step20"
    optimizer = trained(model)
    save({"module": model.state_dict(), "buffer_names": [],
          "optimizer": None, "lr_scheduler": None, "global_steps": 20,
          "dp_world_size": 1, "mp_world_size": 1, "ds_version": "0.9"},
         f"{tag}/mp_rank_00_model_states.pt")
    save({"optimizer_state_dict": optimizer.state_dict(),
          "ds_version": "0.9"},
         f"{tag}/zero_pp_rank_0_mp_rank_00_optim_states.pt")
    write_text(f"{tag}/zero_to_fp32.py", "print()\n")
    write_text(f"{folder}/latest", "global_step20")
    return Shape("global_step20", state(model), [])


class Fake:
    """Pickles as an instance of a class of another module."""
    def __init__(self, **fields):
        self.__dict__.update(fields)


def fake(module, name, base=(Fake,), **body):
    if module not in sys.modules:
        sys.modules[module] = types.ModuleType(module)
    made = type(name, base, {"__module__": module, **body})
    setattr(sys.modules[module], name, made)
    return made


def distributed(folder, ranks=2):
    """torch.distributed.checkpoint: rows of each matrix on several ranks, one
    matrix by columns, optimizer in the same files (filesystem.py, metadata.py
    of torch 2)."""
    dcp = "torch.distributed.checkpoint."
    Index = fake(dcp + "metadata", "MetadataIndex")
    Chunk = fake(dcp + "metadata", "ChunkStorageMetadata")
    Format = enum.Enum("_MEM_FORMAT_ENCODING", ["TORCH_CONTIGUOUS_FORMAT"],
                       module=dcp + "metadata")
    sys.modules[dcp + "metadata"]._MEM_FORMAT_ENCODING = Format
    Properties = fake(
        dcp + "metadata", "TensorProperties",
        __getstate__=lambda self: (
            self.dtype, torch.strided, False,
            Format.TORCH_CONTIGUOUS_FORMAT, False))
    Tensor = fake(dcp + "metadata", "TensorStorageMetadata")
    Bytes = fake(dcp + "metadata", "BytesStorageMetadata")
    Metadata = fake(dcp + "metadata", "Metadata")
    Info = fake(dcp + "filesystem", "_StorageInfo")
    model = network()
    optimizer = trained(model)
    where = f"{folder}/step-20"
    os.makedirs(where, exist_ok=True)
    values = {"model." + name: value for name, value in state(model).items()}
    names = [name for name, _ in model.named_parameters()]
    for number, each in optimizer.state_dict()["state"].items():
        for key in "exp_avg", "exp_avg_sq":
            values[f"optimizer.state.{names[number]}.{key}"] = each[key]
    files = [open(f"{where}/__{rank}_0.distcp", "wb")
             for rank in range(ranks)]
    described, stored = {}, {}

    def store(rank, index, value):
        file = files[rank]
        begin = file.tell()
        blob = io.BytesIO()
        torch.save(value, blob)
        file.write(blob.getvalue())
        stored[index] = Info(relative_path=f"__{rank}_0.distcp", offset=begin,
                             length=file.tell() - begin)

    def index_of(name, offset):
        made = Index(fqn=name, offset=offset and torch.Size(offset),
                     index=None)
        return made

    for name, value in values.items():
        chunks = []
        axis = 1 if name.endswith("down.weight") else 0
        parts = torch.chunk(value, ranks, axis) if value.dim() else [value]
        at = 0
        for rank, part in enumerate(parts):
            offset = [0] * value.dim()
            if value.dim():
                offset[axis] = at
                at += part.shape[axis]
            chunks.append(Chunk(offsets=torch.Size(offset),
                                sizes=part.shape))
            store(rank, index_of(name, offset), part.contiguous().clone())
        described[name] = Tensor(
            properties=Properties(dtype=value.dtype), size=value.shape,
            chunks=chunks)
    described["train_state"] = Bytes()
    store(0, index_of("train_state", None), {"step": 20})
    for file in files:
        file.close()
    with open(f"{where}/.metadata", "wb") as f:
        pickle.dump(Metadata(state_dict_metadata=described, planner_data=None,
                             storage_data=stored, storage_meta=None), f,
                    protocol=2)
    return Shape("step-20", state(model), ["--strip-prefix"])
