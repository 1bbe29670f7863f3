# SPDX-License-Identifier: BSD-3-Clause
"""Shows the replicas of torch's DistributedDataParallel to the checkers that are on by default."""

import weakref

import torch
from torch.nn.parallel import DistributedDataParallel

import _rehearse

from . import _ranks


def _values(model):
    ignored = model.parameters_to_ignore
    return [(name, value.detach()) for name, value in model.module.named_parameters() if name not in ignored]


def _show(model, name, at_end):
    ranks = torch.distributed.get_process_group_ranks(model.process_group)
    _rehearse.show_replicas(name, ranks, _values(model), at_end)


def install():
    construct, forward = DistributedDataParallel.__init__, DistributedDataParallel.forward

    def __init__(self, *arguments, **options):
        construct(self, *arguments, **options)
        if _ranks.in_rank():
            own = _ranks.current()
            group = own.groups[self.process_group.group_name]
            own.models.append((weakref.ref(self), f'DDP #{len(own.models) + 1} on group "{group}"'))

    def checked_forward(self, *inputs, **options):
        if _ranks.in_rank() and self.training and torch.is_grad_enabled() and _rehearse.compares_replicas():
            for model, name in _ranks.current().models:
                if model() is self:
                    _show(self, name, False)
        return forward(self, *inputs, **options)

    DistributedDataParallel.__init__, DistributedDataParallel.forward = __init__, checked_forward


def at_end_of_rank():
    """Call it when a rank's code has returned."""
    for model, name in _ranks.current().models:
        if model() is not None and _rehearse.compares_replicas() and torch.distributed.is_initialized():
            _show(model(), name, True)
