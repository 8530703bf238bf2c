"""A small language model and its training, deterministic to the last bit.

It learns to predict the next character of this repository's LICENSE.  All
that its future depends on is in state(): weights, Adam's moments, the learning
rate's schedule, three random number generators (dropout, data order, Python's)
and the position within the epoch.
"""
import hashlib
import math
import os
import random

import torch

TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "..", "..", "LICENSE")
CONTEXT = 16
BATCH = 32
HELD_BACK = 512  # characters for validation


class Model(torch.nn.Module):
    def __init__(self, symbols, width):
        super().__init__()
        self.embedding = torch.nn.Embedding(symbols, 32)
        self.hidden = torch.nn.Linear(32 * CONTEXT, width)
        self.dropout = torch.nn.Dropout(0.1)
        self.output = torch.nn.Linear(width, symbols)

    def forward(self, text):
        x = self.embedding(text).flatten(1)
        return self.output(self.dropout(torch.relu(self.hidden(x))))


class Training:
    def __init__(self, width=1024, seed=17):
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(seed)
        random.seed(seed)
        with open(TEXT, encoding="utf-8") as f:
            text = f.read()
        symbols = sorted(set(text))
        index = {symbol: i for i, symbol in enumerate(symbols)}
        self.text = torch.tensor([index[symbol] for symbol in text])
        self.model = Model(len(symbols), width)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: 1 / math.sqrt(1 + step / 100))
        self.order = torch.Generator().manual_seed(seed)
        self.step = 0
        self.epoch = 0
        self.best = math.inf
        self.loss = math.inf
        self.shuffle()

    def shuffle(self):
        places = len(self.text) - HELD_BACK - CONTEXT
        self.order_before = self.order.get_state()
        self.places = torch.randperm(places, generator=self.order)
        self.position = 0

    def batch(self, places):
        rows = [self.text[p:p + CONTEXT + 1] for p in places.tolist()]
        block = torch.stack(rows)
        return block[:, :-1], block[:, -1]

    def train(self):
        """One step."""
        if self.position + BATCH > len(self.places):
            self.epoch += 1
            self.shuffle()
        text, wanted = self.batch(
            self.places[self.position:self.position + BATCH])
        self.position += BATCH
        # A use of Python's generator, so that losing its state shows.
        scale = 1 + random.uniform(-1e-3, 1e-3)
        self.model.train()
        loss = torch.nn.functional.cross_entropy(self.model(text), wanted)
        self.optimizer.zero_grad()
        (loss * scale).backward()
        self.optimizer.step()
        self.scheduler.step()
        self.step += 1
        self.loss = loss.item()

    def validate(self):
        """Loss on text never trained on; says whether it is the best yet."""
        self.model.eval()
        with torch.no_grad():
            first = len(self.text) - HELD_BACK
            places = torch.arange(first, len(self.text) - CONTEXT)
            text, wanted = self.batch(places)
            loss = torch.nn.functional.cross_entropy(self.model(text),
                                                     wanted).item()
        better = loss < self.best
        if better:
            self.best = loss
        return loss, better

    def place(self):
        """Where the training is, without the tensors."""
        return {"step": self.step, "epoch": self.epoch,
                "position": self.position, "best": self.best}

    def generators(self):
        return {"torch": torch.get_rng_state(), "order": self.order_before,
                "python": random.getstate()}

    def state(self):
        return {"model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "generators": self.generators(), "place": self.place()}

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.order.set_state(state["generators"]["order"])
        self.shuffle()
        place = state["place"]
        self.step, self.epoch = place["step"], place["epoch"]
        self.position, self.best = place["position"], place["best"]
        torch.set_rng_state(state["generators"]["torch"])
        random.setstate(state["generators"]["python"])

    def fingerprint(self):
        """SHA-256 of all weights, in their order."""
        result = hashlib.sha256()
        for name, tensor in self.model.state_dict().items():
            result.update(name.encode())
            result.update(tensor.numpy().tobytes())
        return result.hexdigest()
