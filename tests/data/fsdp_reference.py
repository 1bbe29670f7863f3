# SPDX-License-Identifier: BSD-3-Clause
"""Makes truth/fsdp.json.gz: the behaviour of PyTorch 2.11's fully_shard on gloo. Records parameters, losses, gradients,
and the collectives of each step, for some small trainings in worlds of 1, 2, 3 and 8 ranks.

Usage: fsdp_reference.py FILE. Needs Python with torch 2.11, on the CPU alone. The tests do not need it.
"""
import gzip
import json
import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

warnings.filterwarnings("ignore")


class Mlp(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) if i + 1 == len(self.layers) else F.relu(layer(x))
        return x


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.ln1 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.ln2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        w = (q @ k.transpose(-1, -2) / (d // self.h) ** 0.5).softmax(-1)
        x = x + self.out((w @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Lm(nn.Module):
    def __init__(self, v=29, d=12, n=2, tied=False):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.blocks = nn.ModuleList(Block(d, 2) for _ in range(n))
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, v, bias=False)
        if tied:
            self.head.weight = self.tok.weight

    def forward(self, tokens):
        x = self.tok(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def mlp_units(model):
    return [*model.layers, model]


def lm_units(model):
    return [*model.blocks, model]


def root(model):
    return [model]


def small_mlp():
    return Mlp(6, 10, 8, 3)


FROZEN = {"frozen": ["layers.0.weight", "layers.0.bias"]}
CASES = {  # name: (model, units, kind of input, optimizer, options)
    "mlp": (small_mlp, mlp_units, ("dense", 6), "sgd", {}),
    "mlp_root_only": (small_mlp, root, ("dense", 6), "sgd", {}),
    "mlp_uneven": (lambda: Mlp(5, 7, 3, 1), mlp_units, ("dense", 5), "sgd", {}),
    "mlp_no_reshard": (small_mlp, mlp_units, ("dense", 6), "sgd", {"reshard_after_forward": False}),
    "mlp_accumulate": (small_mlp, mlp_units, ("dense", 6), "sgd", {"accumulate": 2}),
    "mlp_frozen": (small_mlp, mlp_units, ("dense", 6), "sgd", FROZEN),
    "mlp_clip": (small_mlp, mlp_units, ("dense", 6), "sgd", {"clip": 0.1}),
    "mlp_adamw": (small_mlp, mlp_units, ("dense", 6), "adamw", {}),
    "lm": (lambda: Lm(), lm_units, ("tokens", 29), "adamw", {}),
    "lm_tied": (lambda: Lm(tied=True), lm_units, ("tokens", 29), "adamw", {}),
}


def inputs(kind, n, rank, step, micro):
    generator = torch.Generator().manual_seed(1000 * step + 100 * micro + rank)
    if kind == "dense":
        return torch.randn(4, n, generator=generator, dtype=torch.float64)
    return torch.randint(0, n, (2, 5), generator=generator)


def loss_of(kind, out, x):
    if kind == "dense":
        return out.square().mean()
    return F.cross_entropy(out[:, :-1].reshape(-1, out.shape[-1]), x[:, 1:].reshape(-1))


def values(tensor):
    return tensor.detach().double().flatten().tolist()


def whole_values(tensor):
    return values(tensor.full_tensor())


def record_calls():
    """Returns a list to which each later collective of fully_shard is added."""
    log = []

    def wrap(name, describe, newer_name=None):  # fully_shard calls the newer ones since 2.15
        made = newer_name if hasattr(dist, newer_name or "") else name
        real = getattr(dist, made)

        def call(*args, **kwargs):
            log.append({"op": name, **describe(*args, **kwargs)})
            return real(*args, **kwargs)
        setattr(dist, made, call)

    def payload(given, output):
        return {"in": given.numel(), "out": output.numel(), "dtype": str(given.dtype)[6:]}

    def operation(args, kwargs):
        return str(kwargs.get("op", args[0] if args else "SUM"))

    def gather(output_tensor=None, input_tensor=None, *args, **kwargs):
        return payload(input_tensor, output_tensor)

    def scatter(output=None, input=None, *args, **kwargs):
        return {**payload(input, output), "reduce": operation(args, kwargs)}

    def reduce(tensor, *args, **kwargs):
        return {**payload(tensor, tensor), "reduce": operation(args, kwargs)}
    wrap("all_gather_into_tensor", gather, "all_gather_single")
    wrap("reduce_scatter_tensor", scatter, "reduce_scatter_single")
    wrap("all_reduce", reduce)
    return log


def make_optimizer(kind, parameters):
    return torch.optim.SGD(parameters, 0.1) if kind == "sgd" else torch.optim.AdamW(parameters, 1e-2)


def run_step(model, optimizer, kind, n, options, rank, step, log):
    log.clear()
    losses = []
    micros = options.get("accumulate", 1)
    for micro in range(micros):
        model.set_requires_gradient_sync(micro + 1 == micros)
        x = inputs(kind, n, rank, step, micro)
        loss = loss_of(kind, model(x), x)
        loss.backward()
        losses.append(loss.item())
    norm = None
    if "clip" in options:
        norm = torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], options["clip"])
        norm = (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()
    calls = list(log)
    gradients = {k: whole_values(p.grad) for k, p in model.named_parameters() if p.grad is not None}
    optimizer.step()
    optimizer.zero_grad()
    parameters = {k: whole_values(p) for k, p in model.named_parameters()}
    return {"losses": losses, "norm": norm, "calls": calls, "gradients": gradients, "parameters": parameters}


def run_case(name, mesh, rank, size, log):
    make, units, (kind, n), optimizer_kind, options = CASES[name]
    torch.manual_seed(7)
    model = make().double()
    start = {k: values(p) for k, p in model.named_parameters()}
    shapes = {k: list(p.shape) for k, p in model.named_parameters()}
    for k, p in model.named_parameters():
        if k in options.get("frozen", []):
            p.requires_grad_(False)
    sharding = {k: v for k, v in options.items() if k == "reshard_after_forward"}
    for unit in units(model):
        fully_shard(unit, mesh=mesh, **sharding)
    optimizer = make_optimizer(optimizer_kind, [p for p in model.parameters() if p.requires_grad])
    local = {k: list(p.to_local().shape) for k, p in model.named_parameters()}
    steps = [run_step(model, optimizer, kind, n, options, rank, step, log) for step in range(3)]
    return {"case": name, "world": size, "rank": rank, "optimizer": optimizer_kind, "options": options,
            "input": [kind, n], "shapes": shapes, "start": start, "local_shapes": local, "steps": steps}


def of_all_ranks(runs):
    """Joins the records of all ranks in one case: the calls are the same on all ranks, the losses differ."""
    first = dict(runs[0])
    first.pop("rank")
    first["local_shapes"] = [run["local_shapes"] for run in runs]
    for index, step in enumerate(first["steps"]):
        step["losses"] = [run["steps"][index]["losses"] for run in runs]
        assert all(run["steps"][index]["calls"] == step["calls"] for run in runs)
    return first


def worker(rank, size, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/rdv{size}", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    log = record_calls()
    runs = [run_case(name, mesh, rank, size, log) for name in CASES]
    everyone = [None] * size
    dist.all_gather_object(everyone, runs)
    if rank == 0:
        with open(f"{folder}/{size}.json", "w", encoding="utf-8") as file:
            json.dump([of_all_ranks(of_case) for of_case in zip(*everyone)], file)
    dist.destroy_process_group()


def main():
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for size in (1, 2, 3, 8):
            mp.start_processes(worker, (size, folder), size, start_method="fork")
            with open(f"{folder}/{size}.json", encoding="utf-8") as file:
                cases += json.load(file)
    with gzip.open(sys.argv[1], "wt") as file:
        file.write(json.dumps({"torch": torch.__version__, "cases": cases}))


if __name__ == "__main__":
    main()
