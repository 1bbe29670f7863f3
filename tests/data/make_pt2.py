# SPDX-License-Identifier: BSD-3-Clause
"""Makes the torch.export archives pt2/<name>.pt2 and pt2/expected.json: small programs, and their results in PyTorch.

Usage: make_pt2.py FOLDER. Needs Python with torch 2.11. The tests do not need it.
expected.json: {name: [{inputs: [value...], outputs: [value...]}...]}, runs in order on one instance of the program. A
value is a number, or a tensor {dtype, shape, data}.
"""

import json
import pathlib
import re
import sys

import torch
from torch import nn
from torch.export import Dim


class Dynamic(nn.Module):
    """Symbolic sizes in views and factories, arithmetic on them, a size as output."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, y):
        z = self.linear(x)
        rows = x.shape[0]
        full = torch.full((rows * 2 + y.shape[0], 2), 2.5)
        return {"flat": z.view(-1).reshape(rows, 3) * 2, "full": full, "half": rows // 2, "joined": torch.cat([x, y])}


class Lists(nn.Module):
    """Operators that return lists and tuples, with unused results; None and repeated outputs."""

    def forward(self, x):
        first, second, _ = x.split([1, 2, 1], dim=1)
        values, places = torch.topk(x, 2, dim=1)
        _, mean, _ = torch.native_layer_norm(x, [4], None, None, 1e-5)
        picked = x[:, [0, 2]]
        return first, [second, first], values, places, mean, picked, None


class Constants(nn.Module):
    """A constant tensor, a buffer that is saved, one that is not, and a buffer that each run changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))
        self.register_buffer("scale", torch.tensor([1.5, -2.0]), persistent=False)
        self.register_buffer("view", torch.arange(12.0).view(3, 4).t()[1:, 1:])
        self.weight = nn.Parameter(torch.tensor([3.0, 4.0], dtype=torch.float64))

    def forward(self, x):
        self.count.add_(x)
        return x * torch.tensor([10.0, 20.0]) + self.scale + self.count, self.weight * 2, self.view * 1


class Mutation(nn.Module):
    """Changes its input."""

    def forward(self, x):
        x.mul_(2)
        return x + 1


class Cond(nn.Module):
    """A branch within a branch. Values that the branches need from outside become operands."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        def inner_true(a):
            return a.sin()

        def inner_false(a):
            return a * a

        def positive(a):
            b = torch.cond(a.sum() > 4, inner_true, inner_false, (a,))
            return self.linear(b), b + 1

        def negative(a):
            return a.cos(), a * 2

        return torch.cond(x.sum() > 0, positive, negative, (x,))


class WhileLoop(nn.Module):
    def forward(self, count, x):
        def more(count, x):
            return count > 0

        def step(count, x):
            return count - 1, x * 2 + count

        return torch._higher_order_ops.while_loop(more, step, (count, x))


class Modes(nn.Module):
    """Gradient mode and autocast regions, which export as higher-order operators."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            a = self.linear(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            b = self.linear(x)
        return a + 1, b


class Unbacked(nn.Module):
    """Sizes and numbers that come from data."""

    def forward(self, x, n):
        places = x.nonzero()
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= 10)
        return places * 2, torch.ones(count) * count, places.shape[0] + 1


class Scalars(nn.Module):
    """Dtypes, devices, memory formats, strings, optional lists and numbers as arguments."""

    def forward(self, x, k):
        y = x.to(torch.float64).to(memory_format=torch.channels_last)
        z = torch.nn.functional.interpolate(x, scale_factor=[2.0, 2.0], mode="nearest")
        d = torch.div(x, 0.3, rounding_mode="floor")
        e = torch.ops.aten.index_put(x, [torch.tensor([0]), None, torch.tensor([1])], torch.tensor(7.0))
        f = torch.zeros([2], dtype=torch.int32, device="cpu") + k
        g = torch.complex(x, x) * (1 + 2j)
        return y.sum((0, 1)), z, d, e, f, torch.view_as_real(g), torch.nan_to_num(x, nan=float("inf"))


def grid(*shape, scale=0.25, offset=-1.0):
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float32) * 7 % 11 * scale + offset).reshape(shape)


def encode(value):
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.bfloat16:
        return {**encode(value.float()), "dtype": "bfloat16"}
    data = ["inf" if item == float("inf") else item for item in value.detach().reshape(-1).tolist()]
    return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape), "data": data}


def make(folder, name, module, runs, dynamic=None, functional=False):
    torch.manual_seed(0)
    for parameter in module.parameters():
        if parameter.dtype == torch.float32:
            parameter.data = grid(*parameter.shape, scale=0.125, offset=-0.5)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    program = torch.export.export(module, tuple(i.clone() if isinstance(i, torch.Tensor) else i for i in runs[0]),
                                  dynamic_shapes=dynamic, strict=False)
    if functional:
        program = program.run_decompositions({})
    for graph_module in program.graph_module.modules():
        for node in graph_module.graph.nodes:  # the archive must contain no paths of this machine
            node.meta["stack_trace"] = re.sub(r'File "[^"]*/', 'File "', node.meta.get("stack_trace") or "")
    torch.export.save(program, folder / f"{name}.pt2")
    module.load_state_dict(state)
    records = []
    for inputs in runs:
        encoded = [encode(value) for value in inputs]  # before the program may change them
        outputs = torch.utils._pytree.tree_leaves(module(*inputs))
        records.append({"inputs": encoded, "outputs": [encode(value) for value in outputs],
                        "inputs_after": [encode(value) for value in inputs]})
    return records


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rows, more = Dim("rows", min=2, max=64), Dim("more", min=2, max=32)
    expected = {
        "dynamic": make(folder, "dynamic", Dynamic(), [(grid(n, 4), grid(m, 4)) for n, m in ((5, 3), (2, 9), (7, 7))],
                        ({0: rows}, {0: more})),
        "lists": make(folder, "lists", Lists(), [(grid(3, 4),), (grid(3, 4, scale=-1.0),)]),
        "constants": make(folder, "constants", Constants(), [(grid(2),), (grid(2),), (grid(2, offset=3.0),)]),
        "mutation": make(folder, "mutation", Mutation(), [(grid(3),)]),
        "constants_functional": make(folder, "constants_functional", Constants(), [(grid(2),), (grid(2),)],
                                     functional=True),
        "mutation_functional": make(folder, "mutation_functional", Mutation(), [(grid(3),)], functional=True),
        "cond": make(folder, "cond", Cond(), [(grid(2, 3, offset=o),) for o in (-0.5, 0.5, -3.0)]),
        "while_loop": make(folder, "while_loop", WhileLoop(),
                           [(torch.tensor(n), grid(2, 2)) for n in (3, 0)]),
        "modes": make(folder, "modes", Modes(), [(grid(2, 4),)]),
        "unbacked": make(folder, "unbacked", Unbacked(),
                         [(grid(5), torch.tensor(4)), (torch.zeros(5), torch.tensor(0))]),
        "scalars": make(folder, "scalars", Scalars(), [(grid(2, 3, 2, 2), 3)]),
    }
    (folder / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


main()
