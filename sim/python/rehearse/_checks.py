# SPDX-License-Identifier: BSD-3-Clause
"""Shows the replicas of torch's models to the checkers that are on by default."""

import weakref

import torch
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
from torch.nn.parallel import DistributedDataParallel

import _rehearse

from . import _api, _ranks


class _Model:
    """A model of a rank whose replicas are compared: that of a DistributedDataParallel, or one after fully_shard()."""

    def __init__(self, module, kind):
        self.module, self.kind = weakref.ref(module), kind

    def show(self, at_end=False):
        module = self.module()
        if module is None or not _rehearse.compares_replicas():
            return
        for name, ranks, state in self._replicas(module):
            _rehearse.show_replicas(name, ranks, state, at_end)

    def _replicas(self, module):
        values = [each for each in _api.state_of(module) if not each[2]]
        number = 1 + [each for each in _ranks.current().models if each.kind == self.kind].index(self)
        if self.kind == "DDP":
            group = _ranks.current().groups[module.process_group.group_name]
            ranks = torch.distributed.get_process_group_ranks(module.process_group)
            yield f'DDP #{number} on group "{group}"', ranks, values
            return
        meshes = {}  # the ranks that have parts of some parameters, and these parts
        for value, (name, *_) in zip(module.parameters(), values):
            if any(placement.is_replicate() for placement in getattr(value, "placements", ())):
                meshes.setdefault(tuple(value.device_mesh.mesh.flatten().tolist()), set()).add(name)
        for ranks, names in meshes.items():
            yield f"FSDP #{number}", list(ranks), [each for each in values if each[0] in names]


def _model_of(module, kind):
    models = _ranks.current().models
    known = next((model for model in models if model.module() is module), None)
    if known is None:
        known = _Model(module, kind)
        models.append(known)
    return known


def _is_training(module):
    return _ranks.in_rank() and module.training and torch.is_grad_enabled()


def install():
    construct, forward = DistributedDataParallel.__init__, DistributedDataParallel.forward
    before_root_forward = FSDPState._root_pre_forward

    def __init__(self, *arguments, **options):
        construct(self, *arguments, **options)
        if _ranks.in_rank():
            _model_of(self, "DDP")

    def checked_forward(self, *inputs, **options):
        if _is_training(self):
            _model_of(self, "DDP").show()
        return forward(self, *inputs, **options)

    def checked_root_forward(self, module, *arguments, **options):
        result = before_root_forward(self, module, *arguments, **options)
        if self._is_root and _is_training(module):
            _model_of(module, "FSDP").show()
        return result

    DistributedDataParallel.__init__, DistributedDataParallel.forward = __init__, checked_forward
    FSDPState._root_pre_forward = checked_root_forward


def at_end_of_rank():
    """Call it when a rank's code has returned."""
    if torch.distributed.is_initialized():
        for model in _ranks.current().models:
            model.show(at_end=True)
