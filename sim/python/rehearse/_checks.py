# SPDX-License-Identifier: BSD-3-Clause
"""Shows the replicas of torch's models, and the steps of optimizers, to the checkers that are on by default."""

import weakref

import torch
from torch.distributed import distributed_c10d as c10d
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

import _rehearse

from . import _api, _ranks


class _Model:
    """A model of a rank whose replicas are compared: that of a DistributedDataParallel, or one after fully_shard()."""

    def __init__(self, module, kind):
        self.module, self.kind = weakref.ref(module), kind
        self.is_called = self.is_called_for_gradients = self.is_over = False

    def show(self, at_end=False):
        module = self.module()
        if module is None or not _rehearse.compares_replicas():
            return
        for name, ranks, state in self._replicas(module):
            _rehearse.show_replicas(name, ranks, state, at_end)

    def end(self):
        """Call it while the model's group still is there."""
        if self.is_over:
            return
        self.is_over = True
        self.show(at_end=True)
        module = self.module()
        if self.kind != "DDP" or module is None or self.is_called_for_gradients or module.process_group.size() == 1:
            return
        if any(each.grad is not None for each in module.parameters()):
            how = "called with grad mode off only" if self.is_called else "never called"
            _rehearse.note_habit(
                f"{self._name(module)} was {how}, but its module has gradients, so DDP did not reduce them. Call the "
                "DistributedDataParallel instead of the module"
            )

    def _name(self, module):
        number = 1 + [each for each in _ranks.current().models if each.kind == self.kind].index(self)
        if self.kind != "DDP":
            return f"FSDP #{number}"
        return f'DDP #{number} on group "{_ranks.current().groups[module.process_group.group_name]}"'

    def _replicas(self, module):
        values = [each for each in _api.state_of(module) if not each[2]]
        if self.kind == "DDP":
            yield self._name(module), torch.distributed.get_process_group_ranks(module.process_group), values
            return
        meshes = {}  # the ranks that have parts of some parameters, and these parts
        for value, (name, *_) in zip(module.parameters(), values):
            if any(placement.is_replicate() for placement in getattr(value, "placements", ())):
                meshes.setdefault(tuple(value.device_mesh.mesh.flatten().tolist()), set()).add(name)
        for ranks, names in meshes.items():
            yield self._name(module), list(ranks), [each for each in values if each[0] in names]


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
        if _ranks.in_rank():
            model = _model_of(self, "DDP")
            model.is_called = True
            model.is_called_for_gradients |= torch.is_grad_enabled()
        if _is_training(self):
            model.show()
        return forward(self, *inputs, **options)

    def checked_root_forward(self, module, *arguments, **options):
        result = before_root_forward(self, module, *arguments, **options)
        if self._is_root and _is_training(module):
            _model_of(module, "FSDP").show()
        return result

    def destroy_process_group(group=None):
        if _ranks.in_rank() and group in (None, c10d.GroupMember.WORLD):
            at_end_of_rank()
        destroy(group)

    def before_step(optimizer, *_):
        if _ranks.in_rank():
            parameters = (each for group in optimizer.param_groups for each in group["params"])
            with_gradients = sum(each.numel() for each in parameters if each.grad is not None)
            _rehearse.note_step(with_gradients)
            steps = vars(optimizer).get("_rehearse_steps")
            if steps is None:
                steps = optimizer._rehearse_steps = {"all": 0, "with gradients": 0}
                _ranks.current().steps.append(steps)
            steps["all"] += 1
            steps["with gradients"] += with_gradients > 0

    register_optimizer_step_pre_hook(before_step)
    destroy = c10d.destroy_process_group
    c10d.destroy_process_group = torch.distributed.destroy_process_group = destroy_process_group
    DistributedDataParallel.__init__, DistributedDataParallel.forward = __init__, checked_forward
    FSDPState._root_pre_forward = checked_root_forward


def at_end_of_rank():
    """Call it when a rank's code has returned, or when it gives up its groups."""
    # At the first step of an LBFGS, there may be no gradients yet.
    if any(steps["all"] > 1 and steps["with gradients"] == 0 for steps in _ranks.current().steps):
        _rehearse.note_habit("stepped an optimizer again and again whose parameters never had a gradient")
    if torch.distributed.is_initialized():
        for model in _ranks.current().models:
            model.end()
