#!/usr/bin/python3
"""Only the weights: every tensor as the framework would load it, and no more
bytes than that takes.

On a real S3 server what it sends is counted by a proxy of the test's own, on
a disk by what the program says.
"""
import json
import os
import re
import resource
import struct
import subprocess
import tarfile
import time
import unittest
import zipfile

import kit

import counting
import remote as remotes
import tensors

try:
    import torch
    import shapes
except ImportError:
    torch = None

MIB = 1 << 20


def load_safetensors(path):
    """name -> tensor, by the tests' own reader."""
    kinds = {"F32": torch.float32, "F64": torch.float64,
             "F16": torch.float16, "BF16": torch.bfloat16,
             "I64": torch.int64, "I32": torch.int32, "I16": torch.int16,
             "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
             "C64": torch.complex64}
    found = {}
    for name, (kind, shape, data) in tensors.unpack(kit.read(path)).items():
        tensor = torch.empty(0, dtype=kinds[kind]) if not data else \
            torch.frombuffer(bytearray(data), dtype=kinds[kind])
        found[name] = tensor.reshape(shape)
    return found


def load(path):
    if path.endswith(".safetensors"):
        return load_safetensors(path)
    return torch.load(path, weights_only=True)


def bits(tensor):
    """Its bytes, so that NaN equals NaN and -0 is not 0."""
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8) if flat.numel() else flat


def needed(model):
    """Bytes of the storages that lie under these tensors."""
    storages = {}
    for tensor in model.values():
        storage = tensor.storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


@unittest.skipUnless(torch, "needs PyTorch")
class Weights(kit.Case):
    def setUp(self):
        super().setUp()
        self.proxy = None
        if self.on_s3:
            self.proxy = counting.Counting(os.environ["AWS_ENDPOINT_URL"])
            self.addCleanup(self.proxy.stop)
            self.environment["AWS_ENDPOINT_URL"] = self.proxy.url

    def weights(self, *words, expect=0, **how):
        return self.run_program("weights", "--json", *words, expect=expect,
                                **how)

    def take(self, *words, **how):
        return json.loads(self.weights(*words, **how).out)

    def same(self, path, model):
        found = load(path)
        self.assertEqual(list(found) if path.endswith(".pt") else
                         sorted(found), list(model) if path.endswith(".pt")
                         else sorted(model), path)
        for name, tensor in model.items():
            self.assertEqual(found[name].dtype, tensor.dtype, name)
            self.assertEqual(found[name].shape, tensor.shape, name)
            self.assertTrue(torch.equal(bits(found[name]), bits(tensor)),
                            f"{name} of {path}")

    def check_bytes(self, result, allowed):
        """What came from the remote is little more than `allowed`."""
        bound = 1.02 * allowed + MIB
        self.assertLessEqual(result["fetched_bytes"], bound)
        if self.proxy:
            self.assertEqual(self.proxy.chunk_bytes, result["fetched_bytes"])
            self.assertLessEqual(
                self.proxy.chunk_bytes + self.proxy.other_bytes, bound + MIB)
        return result["fetched_bytes"]

    def push_shape(self, make):
        self.folder = self.path("run-" + make.__name__)
        self.remote = self.new_remote("remote-" + make.__name__)
        shape = make(self.folder)
        self.push("--quiet")
        if self.proxy:
            self.proxy.reset()
        return shape

    def check_shape(self, make):
        shape = self.push_shape(make)
        out = self.path("out-" + make.__name__)
        local = os.path.join(self.folder, shape.name)
        result = self.take(*shape.options, self.remote, out)
        self.same(f"{out}/model.safetensors", shape.model)
        self.check_bytes(result, needed(shape.model)
                         if make is not shapes.many_small else
                         result["checkpoint_bytes"])
        # From the file at hand, the same bytes.
        self.take(*shape.options, local, f"{out}/local.safetensors")
        self.assertEqual(kit.read(f"{out}/local.safetensors"),
                         kit.read(f"{out}/model.safetensors"))
        # As a state dict of torch; a pickled module has its own test.
        dictionary = [*shape.options, "--include", "*", "--format", "pt"]
        self.take(*dictionary, self.remote, f"{out}/far.pt")
        self.same(f"{out}/far.pt", shape.model)
        self.take(*dictionary, local, f"{out}/near.pt")
        self.assertEqual(kit.read(f"{out}/near.pt"),
                         kit.read(f"{out}/far.pt"))
        return shape, result

    def test_deepspeed(self):
        self.check_shape(shapes.deepspeed)

    def test_distributed(self):
        self.check_shape(shapes.distributed)

    def test_hugging_face(self):
        """Files as they are, and nothing of the optimizer."""
        shape = self.push_shape(shapes.hugging_face)
        out = self.path("out")
        result = self.take(self.remote, out)
        self.assertEqual(sorted(os.listdir(out)),
                         shapes.HUGGING_FACE_WEIGHTS)
        for name in shapes.HUGGING_FACE_WEIGHTS:
            self.assertEqual(kit.read(f"{out}/{name}"), kit.read(
                os.path.join(self.folder, shape.name, name)), name)
        self.check_bytes(result, needed(shape.model))
        self.take(os.path.join(self.folder, shape.name), self.path("near"))
        self.assertEqual(kit.tree(self.path("near")), kit.tree(out))
        # By tensor, when tensors are chosen or OUT is a file.
        self.take(self.remote, self.path("one.safetensors"))
        self.same(self.path("one.safetensors"), shape.model)
        self.take("--include", "*.up.weight", self.remote, self.path("few"))
        self.same(self.path("few", "model.safetensors"),
                  {name: value for name, value in shape.model.items()
                   if name.endswith(".up.weight")})


    def test_kept_loadable(self):
        """A pickled module keeps its class and loses its optimizer."""
        shape = self.push_shape(shapes.yolo)
        local = os.path.join(self.folder, shape.name)
        result = self.take(self.remote, self.path("far.pt"))
        self.assertEqual(result["dropped"], "optimizer")
        self.check_bytes(result, needed(shape.model))
        self.take(local, self.path("near.pt"))
        self.assertEqual(kit.read(self.path("near.pt")),
                         kit.read(self.path("far.pt")))
        before, after = torch.load(local), torch.load(self.path("far.pt"))
        self.assertIsNone(after.pop("optimizer"))
        before.pop("optimizer")
        self.assertEqual(list(before), list(after))
        self.assertEqual(before["train_args"], after["train_args"])
        found = after["ema"].state_dict()
        for name, tensor in before["ema"].state_dict().items():
            self.assertTrue(torch.equal(bits(found[name]), bits(tensor)))

    def test_types_converted(self):
        kinds = {"bf16": torch.bfloat16, "f16": torch.float16,
                 "f32": torch.float32}
        for make in shapes.nearly_all_types, shapes.strided:
            shape = self.push_shape(make)
            local = os.path.join(self.folder, shape.name)
            for word, kind in kinds.items():
                wanted = {name: tensor.to(kind)
                          if tensor.is_floating_point() else tensor
                          for name, tensor in shape.model.items()}
                for source, out in ((self.remote, f"far-{word}.safetensors"),
                                    (local, f"near-{word}.pt"),
                                    (self.remote, f"far-{word}.pt")):
                    out = self.path(make.__name__ + out)
                    result = self.take("--dtype", word, source, out)
                    self.same(out, wanted)
                    self.assertEqual(result["converted"], sum(
                        wanted[name].dtype != tensor.dtype
                        for name, tensor in shape.model.items()))

    def test_chosen_tensors(self):
        shape = self.push_shape(shapes.training)
        out = self.path("out.safetensors")
        result = self.take("--include", "block1.*", "--exclude", "*.norm.*",
                           self.remote, out)
        wanted = {name: tensor for name, tensor in shape.model.items()
                  if name.startswith("block1.") and ".norm." not in name}
        self.same(out, wanted)
        self.check_bytes(result, needed(wanted))
        done = self.weights("--include", "nothing*", self.remote,
                            self.path("no"), expect=2)
        self.assertIn("no tensor is left", done.err)
        self.assertFalse(os.path.exists(self.path("no")))

    def test_refused_tensors(self):
        """What has no word in safetensors is named, the rest comes."""
        model = {"fine": torch.randn(10), "wide": torch.randn(
            10, dtype=torch.complex128), "sparse": torch.eye(3).to_sparse(),
            "quantised": torch.quantize_per_tensor(torch.randn(10), .1, 0,
                                                   torch.qint8)}
        shapes.save(model, self.path("odd.pt"))
        result = self.take(self.path("odd.pt"), self.path("out"))
        self.same(self.path("out", "model.safetensors"),
                  {"fine": model["fine"]})
        text = json.dumps(result["refused"])
        for name in "wide", "sparse", "quantised":
            self.assertIn(name, text)

    def test_dry_run(self):
        """Nothing is made, little is fetched, and what it says is true."""
        shape = self.push_shape(shapes.training)
        result = self.take("--dry-run", self.remote, self.path("out"))
        self.assertFalse(os.path.exists(self.path("out")))
        self.assertLessEqual(result["fetched_bytes"], 1 << 17)
        self.assertEqual([each["name"] for each in result["tensors"]],
                         list(shape.model))
        self.assertEqual(result["tensors"][0], {
            "name": "block0.up.weight", "dtype": "F32",
            "shape": [2304, 1152], "size_bytes": 2304 * 1152 * 4})
        real = self.take(self.remote, self.path("out"))
        self.assertEqual(real["fetched_bytes"],
                         real["fetch_bytes"] + result["fetched_bytes"])
        self.assertEqual(real["fetch_bytes"], result["fetch_bytes"])
        text = self.run_program("weights", "--dry-run", os.path.join(
            self.folder, shape.name)).out
        self.assertIn("would take last.pt", text)
        self.assertIn("[2304, 1152]", text)

    def test_keys(self):
        """In doubt it refuses and shows the tree."""
        one, two = shapes.network(1, 64), shapes.network(2, 64)
        path = self.path("gan.pt")
        shapes.save({"netA": one.state_dict(), "netB": two.state_dict(),
                     "optimizer": shapes.trained(one).state_dict()}, path)
        done = self.weights(path, self.path("out"), expect=2)
        self.assertIn("netA", done.err)
        self.assertIn("netB", done.err)
        self.assertFalse(os.path.exists(self.path("out")))
        done = self.run_program("weights", "--list-keys", path)
        self.assertIn("netA: 16 tensors", done.out)
        self.assertEqual(done.err, "")
        self.take("--key", "netB", path, self.path("out"))
        self.same(self.path("out", "model.safetensors"),
                  shapes.state(two))
        done = self.weights("--key", "netC", path, self.path("no"), expect=2)
        self.assertIn("netC", done.err)

    def test_show_tensors(self):
        shape = self.push_shape(shapes.training)
        local = os.path.join(self.folder, shape.name)
        far = json.loads(self.run_program(
            "show", "--tensors", "--json", self.remote).out)
        near = json.loads(self.run_program(
            "show", "--json", local, "--tensors").out)
        self.assertEqual(far["tensors"], near["tensors"])
        names = [each["name"] for each in far["tensors"]]
        self.assertIn("model.block0.up.weight", names)
        self.assertIn("optimizer.state.0.exp_avg", names)
        text = self.run_program("show", "--tensors", self.remote,
                                "last.pt").out
        self.assertIn("model.block0.up.weight", text)
        if self.proxy:
            self.assertLessEqual(self.proxy.chunk_bytes, MIB)

    def several(self):
        """A final, a best and a newest checkpoint in one directory."""
        models = {}
        for seed, name in ((1, "best.pt"), (2, "last.pt")):
            models[name] = shapes.network(seed, 128)
            shapes.save({"model": models[name].state_dict()},
                        f"{self.folder}/{name}")
        models["final"] = shapes.network(3, 128)
        kit.write(f"{self.folder}/model.safetensors", tensors.pack(
            {name: shapes.numbers(value) for name, value in
             shapes.state(models["final"]).items()}))
        kit.write(f"{self.folder}/config.json", "{}")
        kit.write(f"{self.folder}/results.csv", "1,2\n")
        return {name: shapes.state(model) for name, model in models.items()}

    def test_which_checkpoint(self):
        models = self.several()
        self.push("--quiet")
        for source in self.remote, self.folder:
            for number, (words, choice, model) in enumerate((
                    ([], "final", "final"), (["--best"], "best", "best.pt"),
                    (["--latest"], "resume_point", "last.pt"),
                    (["--checkpoint", "best.pt"], "asked_for", "best.pt"))):
                out = self.path(f"out-{source.count(':')}-{number}")
                result = self.take(*words, source, out)
                self.assertEqual(result["choice"], choice, source)
                self.same(f"{out}/model.safetensors", models[model])
            self.assertEqual(
                sorted(os.listdir(self.path(f"out-{source.count(':')}-0"))),
                ["config.json", "model.safetensors"])
        text = self.run_program("weights", "--latest", self.remote,
                                self.path("out")).out
        self.assertIn("took last.pt (1-", text)
        self.assertIn("the resume point", text)
        done = self.weights("--checkpoint", "none.pt", self.folder,
                            self.path("no"), expect=3)
        self.assertIn("none.pt", done.err)
        os.unlink(f"{self.folder}/best.pt")
        self.weights("--best", self.folder, self.path("no"), expect=3)

    def test_places(self):
        """OUT is never replaced by mistake, and never half there."""
        model = shapes.network(1, 128)
        path = self.path("a.pt")
        shapes.save(model.state_dict(), path)
        for out, made in (("new/deep/x.safetensors", ""),
                          ("folder", "model.safetensors"),
                          ("slash/", "model.safetensors"), ("x.pt", "")):
            out = self.path(out)
            target = os.path.join(out, made) if made else out
            self.assertEqual(self.take(path, out)["out"], target)
            self.same(target, shapes.state(model))
            before = os.stat(target)
            done = self.weights(path, out, expect=1)
            self.assertIn("--force", done.err)
            self.assertEqual(os.stat(target).st_ino, before.st_ino)
            self.take("--force", path, out)
            self.assertNotEqual(os.stat(target).st_ino, before.st_ino)
            self.same(target, shapes.state(model))
        self.assertEqual(sorted(os.listdir(self.path("folder"))),
                         ["model.safetensors"])

    def test_folder_places(self):
        self.push_shape(shapes.hugging_face)
        out = self.path("out")
        os.mkdir(out)
        self.take(self.remote, out)
        kit.write(f"{out}/mine", "mine")
        done = self.weights(self.remote, out, expect=1)
        self.assertIn("exists", done.err)
        kit.write(f"{out}/config.json", "old")
        self.take("--force", self.remote, out)
        self.assertEqual(sorted(os.listdir(out)),
                         sorted(["mine", *shapes.HUGGING_FACE_WEIGHTS]))
        self.assertNotEqual(kit.read(f"{out}/config.json"), b"old")
        self.assertFalse([name for name in os.listdir(self.scratch)
                          if name.startswith(".ckptsync")])

    def test_killed(self):
        """A process that is killed leaves nothing behind."""
        shapes.save(shapes.network().state_dict(), self.path("a.pt"))
        os.mkdir(self.path("here"))
        self.weights(self.path("a.pt"), self.path("here", "x.safetensors"),
                     expect=-25, preexec_fn=limit_file_size)
        self.assertEqual(os.listdir(self.path("here")), [])

    def test_damage(self):
        shape = self.push_shape(shapes.training)
        there = remotes.Remote(self.remote) if not self.on_s3 else \
            self.skipTest("looks into a file:// remote")
        manifest = there.read(there.newest())
        entry, = [each for each in manifest["entries"]
                  if each["kind"] == "file"]
        local = os.path.join(self.folder, shape.name)
        begin = data_of(local, "data/0")
        needless = data_of(local, large_record(local, len(shape.model)))
        keys = []
        for wanted in begin, needless:
            at = 0
            for index, _, length, *_ in entry["extents"]:
                if at <= wanted < at + length:
                    keys.append(manifest["chunks"][index]["key"])
                at += length
        self.assertEqual(len(set(keys)), 2)
        there.damage(keys[1])
        self.take(self.remote, self.path("fine"))
        self.same(self.path("fine", "model.safetensors"), shape.model)
        there.damage(keys[0])
        done = self.weights(self.remote, self.path("no"), expect=4)
        self.assertIn(keys[0], done.err)
        self.assertIn("damaged", done.err)
        self.assertEqual(os.listdir(self.path("no")), [])
        os.truncate(there.path(keys[0]), 1000)
        self.weights(self.remote, self.path("no"), expect=4)
        os.unlink(there.path(keys[0]))
        self.weights(self.remote, self.path("no"), expect=4)
        self.assertEqual(os.listdir(self.path("no")), [])

    def test_every_small_byte_is_checked(self):
        """Damage anywhere in what was fetched as a part of a chunk."""
        if self.on_s3:
            self.skipTest("looks into a file:// remote")
        self.push_shape(shapes.training)
        there = remotes.Remote(self.remote)
        manifest = there.read(there.newest())
        shared = {each["key"]: each["size_bytes"]
                  for each in manifest["chunks"]
                  if each["size_bytes"] < 4 << 20}
        self.assertTrue(shared)
        good = self.take(self.remote, self.path("good"))
        for key, size in shared.items():
            for _ in range(20):
                position = self.random.randrange(size)
                there.damage(key, position)
                out = self.path("out")
                done = self.weights("--force", self.remote, out, expect=None)
                if done.status == 0:
                    self.assertEqual(
                        kit.read(f"{out}/model.safetensors"),
                        kit.read(self.path("good", "model.safetensors")))
                else:
                    self.assertEqual(done.status, 4, str(done))
                there.damage(key, position)
        self.assertLess(good["fetched_bytes"], 24 << 20)

    def test_whole_files(self):
        """Keras, GGUF and HDF5 as they are, with a word about optimizers."""
        data = os.path.join(kit.TREE, "tests", "data", "format")
        h5 = kit.read(os.path.join(data, "model-3.h5"))
        with zipfile.ZipFile(self.path("m.keras"), "w") as made:
            made.writestr("metadata.json", "{}")
            made.writestr("config.json", "{}")
            made.writestr("model.weights.h5", h5)
        kit.write(self.path("m.weights.h5"), h5)
        gguf = b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(1000)
        kit.write(self.path("m.gguf"), gguf)
        for name, made, wanted in (
                ("m.keras", "model.weights.h5", h5),
                ("m.weights.h5", "m.weights.h5", h5),
                ("m.gguf", "m.gguf", gguf)):
            remote = self.new_remote("remote-" + name)
            self.run_program("push", "--quiet", self.put_alone(name), remote)
            for source in self.path(name), remote:
                out = self.path(f"out-{made[:7]}-{source.count(':')}")
                result = self.take("--force", source, out)
                self.assertEqual(kit.read(f"{out}/{made}"), wanted)
                self.assertEqual(result["format"], "files")
                if name != "m.gguf":
                    self.assertIn("optimizer", result["note"])
            done = self.weights("--dtype", "bf16", self.path(name),
                                self.path("no"), expect=2)
            self.assertIn("as they", done.err)

    def put_alone(self, name):
        """A directory with this file and no other."""
        folder = self.path("alone-" + name.replace(".", "-"))
        kit.write(f"{folder}/{name}", kit.read(self.path(name)))
        return folder

    def test_places_from_the_environment(self):
        shape = self.push_shape(shapes.plain)
        there = {"CKPTSYNC_REMOTE": self.remote}
        self.take(self.path("out"), environment=there)
        self.same(self.path("out", "model.safetensors"), shape.model)
        result = self.take("--dry-run", environment=there)
        self.assertEqual(len(result["tensors"]), len(shape.model))
        for words in ["model.pt"], []:
            done = self.run_program("show", "--tensors", *words,
                                    environment=there, cwd=self.scratch)
            self.assertIn("block0.up.weight", done.out)

    def test_nemo(self):
        model = shapes.network()
        shapes.save(model.state_dict(), self.path("model_weights.ckpt"))
        kit.write(self.path("model_config.yaml"), "a: 1\n")
        os.mkdir(self.folder)
        with tarfile.open(f"{self.folder}/m.nemo", "w") as made:
            for name in "model_config.yaml", "model_weights.ckpt":
                made.add(self.path(name), "./" + name)
        self.push("--quiet")
        for source in f"{self.folder}/m.nemo", self.remote:
            out = self.path(f"out-{source.count(':')}")
            result = self.take(source, out)
            self.same(f"{out}/model.safetensors", shapes.state(model))
        self.check_bytes(result, needed(shapes.state(model)))

    def test_impossible(self):
        """One sentence, with what to do instead."""
        for number, (files, words) in enumerate((
                (["global_step1/zero_pp_rank_0_mp_rank_00_model_states.pt",
                  "global_step1/zero_pp_rank_0_mp_rank_00_optim_states.pt"],
                 "zero_to_fp32.py"),
                (["3/_CHECKPOINT_METADATA", "3/default/manifest.ocdbt",
                  "3/default/d/abc"], "Orbax"),
                (["ckpt-1.data-00000-of-00001", "ckpt-1.index"],
                 "TensorFlow"))):
            folder = self.path(f"odd-{number}")
            for name in files:
                kit.write(f"{folder}/{name}", "some bytes")
            source = os.path.join(folder, files[0].split("/")[0]) \
                if "/" in files[0] else folder
            done = self.weights(source, self.path("no"), expect=None)
            self.assertIn(done.status, (1, 4), str(done))
            self.assertIn(words, done.err)
            self.assertFalse(os.path.exists(self.path("no")))

    def test_usage(self):
        for words, text in (
                (["weights", "--dry-run"], "nothing to take"),
                (["weights", "a.pt"], "nothing to take"),
                (["weights", self.remote], "no output"),
                (["weights", self.remote, "a", "b"], "two outputs"),
                (["weights", "--best", "--latest", self.remote, "a"],
                 "do not go together"),
                (["weights", "--format", "onnx", "a", "b"], "safetensors"),
                (["weights", "--dtype", "int8", "a", "b"], "bf16"),
                (["show", self.remote, "a", "b"], "two checkpoints")):
            done = self.run_program(*words, expect=2)
            self.assertIn(text, done.err, str(done))
        done = self.run_program("weights", self.path("not.pt"),
                                self.path("out"), expect=3)
        self.assertIn("not.pt", done.err)

    def test_larger_than_memory(self):
        """A tensor of 4 GiB, one behind it, in little memory."""
        path = self.path("huge.safetensors")
        length = 4 << 30
        tail = torch.arange(1000, dtype=torch.float32)
        head = tensors.layout({"huge": ("F32", [length // 4], length),
                               "tail": shapes.numbers(tail)})
        with open(path, "wb") as f:
            f.write(head)
            f.seek(len(head) + length - 4)
            f.write(struct.pack("<f", 1.5))
            f.write(shapes.numbers(tail)[2])
        out = self.path("out.safetensors")
        peak = self.measure("--dtype", "bf16", path, out)
        self.assertLess(peak, 64 << 20)
        with open(out, "rb") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            header = json.loads(f.read(size))
            f.seek(8 + size + header["huge"]["data_offsets"][1] - 2)
            self.assertEqual(f.read(2), b"\xc0\x3f")
            f.seek(8 + size + header["tail"]["data_offsets"][0])
            found = torch.frombuffer(bytearray(f.read(2000)),
                                     dtype=torch.bfloat16)
        self.assertTrue(torch.equal(found, tail.bfloat16()))
        os.unlink(out)
        self.take("--include", "tail", path, out)
        self.same(out, {"tail": tail})

    def measure(self, *words):
        """The peak memory of `weights WORDS`, as the kernel says while it
        runs (what wait4 says counts its parent before exec)."""
        child = subprocess.Popen([kit.PROGRAM, "weights", *words],
                                 env=self.environment,
                                 stdout=subprocess.DEVNULL)
        peak = 0
        while child.poll() is None:
            try:
                text = kit.read(f"/proc/{child.pid}/status").decode()
            except OSError:
                break
            found = re.search(r"VmHWM:\s+(\d+) kB", text)
            if found and "ckptsync" in text.split("\n", 1)[0]:
                peak = max(peak, int(found[1]) << 10)
            time.sleep(0.01)
        self.assertEqual(child.wait(), 0)
        self.assertGreater(peak, 0)
        return peak


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def large_record(path, first):
    """A storage of more than a chunk shared by several, from a number on."""
    with zipfile.ZipFile(path) as made:
        for each in made.infolist():
            name = each.filename.split("/", 1)[1]
            if name.startswith("data/") and each.file_size > 4 << 20 and \
                    int(name[5:]) >= first:
                return name
    raise AssertionError("no large record")


def data_of(path, name):
    """Where a record's bytes begin in a torch zip."""
    with zipfile.ZipFile(path) as made:
        record, = [each for each in made.infolist()
                   if each.filename.endswith("/" + name)]
    with open(path, "rb") as f:
        f.seek(record.header_offset + 26)
        name_length, extra = struct.unpack("<HH", f.read(4))
    return record.header_offset + 30 + name_length + extra


def add_shape(make):
    def test(self):
        self.check_shape(make)
    setattr(Weights, f"test_{make.__name__}", test)


if torch:
    for each in shapes.ONE_FILE:
        add_shape(each)


if __name__ == "__main__":
    kit.main()
