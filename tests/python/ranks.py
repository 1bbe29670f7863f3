# SPDX-License-Identifier: BSD-3-Clause
"""Helpers of the tests."""

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
