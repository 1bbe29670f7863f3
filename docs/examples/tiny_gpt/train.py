# SPDX-License-Identifier: BSD-3-Clause
"""A small GPT that learns the characters of its own source, with DDP.

Planted: a rank whose loss is its best so far averages it with the others, in a call that the others may not make.
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self, letters, length, width=32, heads=4, depth=2):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.head = nn.Linear(width, letters)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.blocks(self.letters(ids) + self.places(places)))


def batch_of(text, length, size, generator):
    begins = torch.randint(len(text) - length - 1, (size,), generator=generator)
    rows = torch.stack([text[begin : begin + length + 1] for begin in begins.tolist()])
    return rows[:, :-1], rows[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--right", action="store_true", help="without the mistake")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    with open(__file__) as file:
        text = torch.tensor([ord(letter) % 128 for letter in file.read()])
    model = DistributedDataParallel(Gpt(letters=128, length=32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(rank)
    best = float("inf")
    for step in range(options.steps):
        ids, targets = batch_of(text, 32, 8, generator)
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        if options.right or loss.item() < best:
            best = min(best, loss.item())
            mean = loss.detach().clone()
            dist.all_reduce(mean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.3f} after {options.steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
