# SPDX-License-Identifier: BSD-3-Clause
"""Makes bert_splits.json.gz: how DDPOptimizer cuts transformers' BertForMaskedLM.

Usage: make_bert_splits.py FILE. Needs Python with torch 2.11 and transformers 5.23. The tests do not need it.
{shape: {parameters: {name: bytes}, runs: [{bucket_bytes_cap, first_bucket_cap, buckets: [{size, params: [name...]}...]}
...]}}: buckets in the order of the graph, the parameters of each in the order in which DDPOptimizer counts them. The
shape "tiny" is that of bert_tiny.pt2.
"""

import gzip
import json
import sys
from unittest import mock

import torch
from torch import nn
from torch._dynamo.backends.distributed import DDPOptimizer
from transformers import BertConfig, BertForMaskedLM

MIB = 1024 * 1024
SHAPES = {
    "tiny": dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=2, intermediate_size=128, vocab_size=1000),
    "base": {},
}
CAPS = {  # (bucket_bytes_cap, first_bucket_cap)
    "tiny": [(25 * MIB, MIB), (MIB, MIB), (104_857, 104_857), (100_000, 50_000), (30_000, 1), (1, 1)],
    "base": [(25 * MIB, MIB), (100 * MIB, MIB), (MIB, MIB), (5 * MIB, MIB)],
}


def placeholder(name):
    """Dynamo's name for the input that holds a parameter."""
    *modules, parameter = name.split(".")
    return "L_self_" + "".join(f"modules_{m}_" for m in modules) + f"parameters_{parameter}_"


def record_buckets(model, ids, bucket_bytes_cap, first_bucket_cap):
    """Records the buckets of one call in training mode. The pieces are not compiled: the graph runs whole."""
    names = {placeholder(name): name for name, _ in model.named_parameters(remove_duplicate=False)}
    found = []

    def split(graph_module, example_inputs):
        optimizer = DDPOptimizer(bucket_bytes_cap, lambda gm, _: gm.forward, first_bucket_cap)
        with mock.patch.object(torch.fx.passes.split_module, "split_module", side_effect=StopIteration):
            try:
                optimizer.compile_fn(graph_module, example_inputs)
            except StopIteration:
                pass
        found.append([{"size": b.size, "params": [names[p] for p in b.params]} for b in optimizer.buckets])
        return graph_module.forward

    torch._dynamo.reset()
    torch.compile(model, backend=split)(input_ids=ids, labels=ids)
    (buckets,) = found  # one graph
    return buckets


def main(path):
    recorded = {}
    for shape, sizes in SHAPES.items():
        model = BertForMaskedLM(BertConfig(**sizes)).train()
        ids = torch.arange(32).reshape(2, 16)
        recorded[shape] = {
            "parameters": {name: p.nbytes for name, p in model.named_parameters()},
            "runs": [
                {"bucket_bytes_cap": cap, "first_bucket_cap": first, "buckets": record_buckets(model, ids, cap, first)}
                for cap, first in CAPS[shape]
            ],
        }
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(json.dumps(recorded, indent=1).encode())


main(sys.argv[1])
