# SPDX-License-Identifier: BSD-3-Clause
"""Makes fx_splits.json.gz: random graphs, and their splits by torch.fx.passes.split_module of PyTorch 2.11.

Usage: make_fx_splits.py OUTPUT. Needs Python with torch. The tests do not need it.
Record: nodes [{name, op, target, args, kwargs, val}], partition {name: id}, and either error ("cycle") or
top [node...] and submods {name: [node...]}. A node among arguments is {"n": name}.
"""

import gzip
import json
import operator
import random
import sys

import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.fx.passes.split_module import split_module

FUNCTIONS = [operator.add, operator.mul, operator.neg, torch.relu, torch.cat]
INPUT_NAMES = ["L_x_", "x", "input", "L_self_Weight", "x_1", "relu", "add_1"]


def spell(node):
    if not callable(node.target):
        return node.target
    target = node.target
    if target is torch._C._set_grad_enabled:
        return "torch._C._set_grad_enabled"
    return f"{target.__module__ or 'torch'}.{target.__name__}"


def encode(argument):
    if isinstance(argument, torch.fx.Node):
        return {"n": argument.name}
    if isinstance(argument, (list, tuple)):
        return [encode(item) for item in argument]
    if isinstance(argument, dict):
        return {key: encode(item) for key, item in argument.items()}
    if isinstance(argument, torch.dtype):
        return {"dtype": str(argument).removeprefix("torch.")}
    return argument


def size(value):
    return value if isinstance(value, int) else str(value.node.expr)


def encode_value(value):
    if isinstance(value, torch.SymInt):
        return {"kind": "symint", "expr": str(value.node.expr)}
    return {"kind": "tensor", "shape": [size(s) for s in value.shape], "stride": [size(s) for s in value.stride()],
            "dtype": "float32", "requires_grad": False}


def encode_node(node, with_value):
    record = {"name": node.name, "op": node.op, "target": spell(node), "args": encode(node.args)}
    if node.kwargs:
        record["kwargs"] = encode(node.kwargs)
    if with_value and "example_value" in node.meta:
        record["val"] = encode_value(node.meta["example_value"])
    return record


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.root = torch.nn.Module()
        self.root.p = torch.nn.Parameter(torch.ones(2))
        self.root.sub = torch.nn.Module()
        self.root.sub.lin = torch.nn.Linear(2, 2)
        self.root.body = torch.fx.GraphModule(torch.nn.Module(), self.body())
        self.graph = torch.fx.Graph()
        self.values = []
        self.symbols = []
        self.shape_env = ShapeEnv()
        self.fakes = FakeTensorMode(shape_env=self.shape_env, static_shapes=False)

    def body(self):
        graph = torch.fx.Graph()
        graph.output(graph.placeholder("x"))
        return graph

    def symbol(self, number):
        source = ConstantSource(f"d{number}")
        symbol = self.shape_env.create_symbol(5 + number, source, dynamic_dim=DimDynamic.DYNAMIC)
        return self.shape_env.create_symintnode(symbol, hint=5 + number, source=source)

    def tensor(self):
        pick = lambda: self.random.choice(self.symbols + [2, 3]) * self.random.choice([1, 1, 2])
        with self.fakes:
            return torch.empty([pick() for _ in range(self.random.randint(0, 3))])

    def add(self, node, value=None):
        if value is not None:
            node.meta["example_value"] = value
        self.values.append(node)
        return node

    def inputs(self, symbolic):
        if symbolic:
            for number in range(self.random.randint(1, 3)):
                self.symbols.append(self.symbol(number))
                self.add(self.graph.placeholder(f"s{number}"), self.symbols[-1])
        for name in self.random.sample(INPUT_NAMES, self.random.randint(1, 4)):
            self.add(self.graph.placeholder(name), self.tensor() if symbolic else None)
        if self.random.random() < 0.5:
            self.add(self.graph.get_attr("p"), self.tensor() if symbolic else None)
        if self.random.random() < 0.5:
            self.add(self.graph.get_attr("sub.lin.weight"), self.tensor() if symbolic else None)
        self.body_node = self.graph.get_attr("body") if self.random.random() < 0.3 else None

    def step(self, symbolic):
        pick = lambda: self.random.choice(self.values[-8:] if self.random.random() < 0.7 else self.values)
        kind = self.random.random()
        if kind < 0.1:
            node = self.graph.call_method(self.random.choice(["add_", "view", "sum"]), (pick(), 1))
        elif kind < 0.2:
            node = self.graph.call_module("sub.lin", (pick(),))
        elif kind < 0.25 and self.body_node is not None:
            node = self.graph.call_function(torch.relu, (self.body_node, pick()))
        elif kind < 0.35:
            node = self.graph.call_function(torch.cat, ([pick(), pick(), pick()],), {"dim": 0, "out": {"k": pick()}})
        else:
            node = self.graph.call_function(self.random.choice(FUNCTIONS), (pick(), pick()))
        value = None
        if symbolic:
            value = self.symbols[0] * 2 if self.random.random() < 0.15 else self.tensor()
        self.add(node, value)

    def make(self, symbolic, states, steps):
        self.inputs(symbolic)
        autocasts = []
        for _ in range(steps):
            kind = self.random.random()
            if states and kind < 0.1:
                self.graph.call_function(torch._C._set_grad_enabled, (self.random.random() < 0.5,))
            elif states and kind < 0.2:
                autocasts.append(self.graph.call_function(torch.amp._enter_autocast,
                                                          ("cpu", torch.bfloat16, True, None)))
            elif autocasts and kind < 0.35:
                self.graph.call_function(torch.amp._exit_autocast, (autocasts.pop(),))
            else:
                self.step(symbolic)
        while autocasts:
            self.graph.call_function(torch.amp._exit_autocast, (autocasts.pop(),))
        self.graph.output(tuple(self.random.sample(self.values, self.random.randint(1, min(3, len(self.values))))))
        return torch.fx.GraphModule(self.root, self.graph)


def partitions(module, generator, rising):
    count = generator.randint(1, 5)
    current = 0
    chosen = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        current = min(current + (generator.random() < 0.25), count) if rising else generator.randint(0, count)
        chosen[node.name] = int(current)
    return chosen


def case(seed):
    generator = random.Random(seed + 1000000)
    symbolic = generator.random() < 0.5
    states = generator.random() < 0.3
    steps = generator.randint(1, 8) if generator.random() < 0.5 else generator.randint(5, 40)
    module = Maker(seed).make(symbolic, states, steps)
    chosen = partitions(module, generator, states or generator.random() < 0.7)
    record = {"nodes": [encode_node(node, True) for node in module.graph.nodes], "partition": chosen}
    try:
        split = split_module(module, None, lambda node: chosen[node.name])
    except RuntimeError as error:
        assert "cycle exists" in str(error), error
        record["error"] = "cycle"
        return record
    record["top"] = [encode_node(node, False) for node in split.graph.nodes]
    record["submods"] = {name: [encode_node(node, False) for node in sub.graph.nodes]
                         for name, sub in split.named_children() if name.startswith("submod_")}
    return record


def main():
    cases = [case(seed) for seed in range(240)]
    text = json.dumps(cases, separators=(",", ":")).encode()
    with open(sys.argv[1], "wb") as out:
        out.write(gzip.compress(text, mtime=0))
    print(len(cases), "cases,", sum("error" in c for c in cases), "cycles,", len(text), "bytes")


main()
