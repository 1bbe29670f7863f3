# SPDX-License-Identifier: BSD-3-Clause
"""Helpers of the tests."""

import os
import subprocess
import sys

import torch
import torch.distributed as dist

import rehearse

RANKS = 4


def on_ranks(function, ranks=RANKS, **options):
    """Runs `function(rank)` on all ranks, which must succeed. Returns the report."""
    return rehearse.run(function, ranks=ranks, **options)


def report_of(function, ranks=2, **options):
    """The report of a run that may fail."""
    return rehearse.run(function, ranks=ranks, check=False, **options)


def gathered(value):
    """What each rank gives, by rank."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def values_of(*shape):
    """The same numbers each time, of both signs."""
    return ((torch.arange(torch.Size(shape).numel()) * 7 % 23 - 11) / 5).reshape(shape)


def command(folder, *words, **variables):
    """Runs `python -m rehearse` in the folder, without the options of this process."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REHEARSE")}
    return subprocess.run(
        [sys.executable, "-m", "rehearse", *words],
        cwd=folder,
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
