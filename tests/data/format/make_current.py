#!/usr/bin/env python3
"""Write checkpoints of a current PyTorch into `current`, with `expected`.

Like make_weights.py, for what Debian's PyTorch cannot write.  Made with torch
2.15.0 from Python's registry; committed, so the tests need neither.
"""
import os
import shutil
import sys

import torch
import torch.distributed.checkpoint as checkpoint

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    # It makes classes that stand for those of torch, which are there now.
    import make_weights
    sys.modules.update(make_weights.REAL)
    expected = make_weights.Expected()
    make_weights.TYPES.update({
        torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
        torch.uint16: "U16", torch.uint32: "U32", torch.uint64: "U64"})
    shutil.rmtree(f"{HERE}/current", ignore_errors=True)
    os.makedirs(f"{HERE}/current")
    os.chdir(f"{HERE}/current")
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = model.state_dict()
    training = {"model": state, "optimizer": optimizer.state_dict(), "epoch": 1}
    for name, how in (("training.pt", {}), ("training-5.pt", {"pickle_protocol": 5})):
        torch.save(training, name, **how)
        expected.read(f"../current/{name}", state, "model")
    torch.save({"model": None, "ema": model, "optimizer": optimizer.state_dict()},
               "module.pt")
    expected.read("../current/module.pt", state, "ema")
    types = {name: torch.arange(6).reshape(2, 3).to(dtype)
             for dtype, name in make_weights.TYPES.items()}
    types["conjugated"] = torch.ones(2, dtype=torch.complex64).conj()
    types["buffer"] = torch.nn.Buffer(torch.ones(2))
    torch.save(types, "types.pt")
    types.pop("conjugated")
    expected.read("../current/types.pt", types, refused=[
        "conjugated: it is a conjugated or negated view"])
    training["optimizer"] = {"state": {0: {"exp_avg": torch.ones(2)}}}
    checkpoint.save(training, checkpoint_id="distributed", no_dist=True)
    expected.read("../current/distributed", state, "model")
    with open("expected", "w") as out:
        out.write("\n".join(expected.lines) + "\n")


if __name__ == "__main__":
    main()
