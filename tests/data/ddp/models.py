# SPDX-License-Identifier: BSD-3-Clause
"""The models of record_ddp.py. tests/core/parallel/recorded/recorded_models.h has the same ones."""
import torch
from torch import nn


def linear(inputs, outputs, dtype=torch.float64):
    return nn.Linear(inputs, outputs, dtype=dtype)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = linear(6, 5), linear(5, 5), linear(5, 3)

    def forward(self, x):
        return self.third(self.second(self.first(x).relu()).relu())


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.never = linear(6, 3), linear(6, 3), linear(6, 3)

    def forward(self, x, go_left):
        return self.left(x) if go_left else self.right(x)


class Reused(nn.Module):  # one layer used twice, another never
    def __init__(self):
        super().__init__()
        self.twice, self.never = linear(6, 6), linear(6, 3)

    def forward(self, x):
        return self.twice(self.twice(x).relu())


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.last = nn.BatchNorm1d(6, dtype=torch.float64), linear(6, 3)

    def forward(self, x):
        return self.last(self.norm(x))


class NormUnused(nn.Module):  # like Norm, with a layer that nothing uses
    def __init__(self):
        super().__init__()
        self.norm, self.last = nn.BatchNorm1d(6, dtype=torch.float64), linear(6, 3)
        self.never = linear(6, 3)

    def forward(self, x):
        return self.last(self.norm(x))


class Frozen(nn.Module):  # a layer that takes no gradient
    def __init__(self):
        super().__init__()
        self.base, self.head = linear(6, 5), linear(5, 2)
        self.base.requires_grad_(False)

    def forward(self, x):
        return self.head(self.base(x))


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = linear(6, 5), linear(5, 2, torch.float32)

    def forward(self, x):
        return self.narrow(self.wide(x).float()).double()


class TiedLayer(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.weight = shared


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = TiedLayer(nn.Parameter(torch.zeros(6, 6, dtype=torch.float64)))
        self.decode = TiedLayer(self.encode.weight)

    def forward(self, x):
        return x.mm(self.encode.weight).relu().mm(self.decode.weight)


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4, sparse=True, dtype=torch.float64)
        self.head = linear(4, 2)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


class Matrix(nn.Module):  # large enough for PowerSGD to compress
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = linear(6, 12), linear(12, 8)

    def forward(self, x):
        return self.narrow(self.wide(x).relu())
