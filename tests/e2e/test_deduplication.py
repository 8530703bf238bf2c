#!/usr/bin/python3
"""Unchanged bytes do not go up: at most 1.02 times the bytes of the tensors
that changed, and 64 KiB a commit, on checkpoints of 64 MiB and more."""
import os

import kit
import tensors

MIB = 1 << 20
LAYERS, EACH = 16, 4 * MIB
COMMIT = 64 << 10


class Deduplication(kit.Case):
    def weights(self, generations):
        """LAYERS tensors; the same generation makes the same bytes."""
        return {f"layer.{i}.weight":
                ("U8", [EACH], kit.noise(EACH, f"{i}/{generation}"))
                for i, generation in enumerate(generations)}

    def put(self, name, tensors_, metadata=None):
        kit.write(os.path.join(self.folder, name),
                  tensors.pack(tensors_, metadata))

    def sent(self, *options):
        """Bytes that a push stored, by the program's word and, on a disk, by
        what lies there."""
        before = self.stored()
        told = self.push("--json", *options).json["new_bytes"]
        if before is not None:
            self.assertGreaterEqual(told + COMMIT, self.stored() - before)
        return told

    def stored(self):
        if self.on_s3:
            return None
        return sum(os.path.getsize(os.path.join(where, name))
                   for where, _, names in os.walk(self.remote_folder())
                   for name in names)

    def check(self, sent, changed):
        self.assertLessEqual(sent, 1.02 * changed + COMMIT)

    def test_frozen_layers(self):
        self.put("step-1.safetensors", self.weights([0] * LAYERS))
        self.check(self.sent(), LAYERS * EACH)
        self.put("step-2.safetensors",
                 self.weights([0] * (LAYERS - 2) + [1] * 2))
        self.check(self.sent(), 2 * EACH)

    def test_best_equal_to_last(self):
        self.put("last.safetensors", self.weights([0] * LAYERS))
        self.sent()
        self.put("best.safetensors", self.weights([0] * LAYERS))
        self.check(self.sent(), 0)

    def test_a_growing_header(self):
        for length in (1, 100, 5000, 70000):
            self.put("last.safetensors", self.weights([0] * LAYERS),
                     {"history": "x" * length})
            sent = self.sent()
            if length > 1:
                self.check(sent, length)

    def test_touched_but_not_changed(self):
        self.put("last.safetensors", self.weights([0] * LAYERS))
        self.sent()
        os.utime(self.folder + "/last.safetensors")
        self.check(self.sent(), 0)
        listed = self.run_program("list", "--json", self.remote).json
        self.assertEqual(len(listed["checkpoints"]), 1)

    def test_torch_zips(self):
        """A frozen part and a growing pickle in files of torch.save."""
        import torch
        frozen = torch.arange(12 * MIB, dtype=torch.int32)  # 48 MiB
        trained = torch.zeros(4 * MIB, dtype=torch.int32)   # 16 MiB
        os.makedirs(self.folder)
        for step in range(3):
            trained += 1
            torch.save({"trained": trained, "frozen": frozen,
                        "history": list(range(step * 1000))},
                       self.folder + "/last.pt")
            sent = self.sent()
            if step:
                self.check(sent, trained.numel() * 4 + step * 5000)
            torch.save({"trained": trained, "frozen": frozen,
                        "history": list(range(step * 1000))},
                       self.folder + "/best.pt")
            self.check(self.sent(), step * 5000)

    def test_a_tensor_that_moved(self):
        """The final safetensors shares its tensors with the last zip."""
        import torch
        weight = torch.arange(16 * MIB, dtype=torch.int32)
        os.makedirs(self.folder)
        torch.save({"model": {"w": weight}, "optimizer": weight.flip(0)},
                   self.folder + "/last.pt")
        self.sent()
        self.put("final.safetensors", {
            "w": ("I32", list(weight.shape), weight.numpy().tobytes())})
        self.check(self.sent(), 0)


if __name__ == "__main__":
    kit.main()
