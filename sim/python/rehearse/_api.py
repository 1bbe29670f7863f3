# SPDX-License-Identifier: BSD-3-Clause
"""What scripts call: the same names as RankContext has in C++.

A script that imports rehearse also runs without it, by `python` or torchrun: then the checks do nothing.
"""

import contextlib
import os
import sys
import time

import torch

try:
    import _rehearse

    from ._ranks import in_rank
except ImportError:  # not preloaded
    _rehearse = None

    def in_rank():
        return False


def rank():
    """The calling rank; -1 outside of ranks."""
    return _rehearse.rank() if _rehearse is not None else -1


def now():
    """The time since the run's beginning in virtual seconds; outside of ranks, time.monotonic()."""
    return _rehearse.now() if in_rank() else time.monotonic()


def compute(seconds):
    """Takes as long as a computation of that duration: virtual time passes, and other ranks run."""
    _rehearse.compute(seconds) if in_rank() else time.sleep(seconds)


def scratch_folder():
    """A folder that only this rank of this run has; outside of ranks, the working directory."""
    return _rehearse.scratch_folder() if in_rank() else os.getcwd()


def shared_folder():
    """A folder of the run, which all ranks share; outside of ranks, the working directory."""
    return _rehearse.shared_folder() if in_rank() else os.getcwd()


def progress(done, total, text=""):
    """Shows people how far rank 0 is."""
    if in_rank():
        _rehearse.progress(done, total, text)


@contextlib.contextmanager
def label(name):
    """Names what the calls in the block communicate: a parameter, a bucket, a step."""
    scope = _rehearse.label(name) if in_rank() else None
    try:
        yield
    finally:
        del scope


def expect(holds, what, detail=""):
    """A check of the script's own. The report counts how often `what` held; if it does not, the run is CHECK FAILED."""
    if in_rank():
        _rehearse.expect(bool(holds), what, detail)
    elif not holds:
        raise AssertionError(f'check "{what}" did not hold{": " if detail else ""}{detail}')


def result(name, value):
    """Records a number or a tensor of this rank, for comparing runs."""
    if in_rank():
        _rehearse.result(name, torch.as_tensor(value).detach())


def check_replicas(model, name="", ranks=()):
    """Checks that all ranks (or `ranks`) have equal values.

    `model`: a module, a DistributedDataParallel, a module after fully_shard(), an optimizer, or tensors by name.
    """
    if in_rank():
        _rehearse.check_replicas(state_of(model), name, list(ranks))


def check_gradients(model, loss_of_all, name="", ranks=(), tolerance=0.0):
    """Checks that the gradients equal those of one process.

    `loss_of_all()` computes the loss of the whole batch with the module itself, without collectives. Call it after
    backward and before the optimizer's step. For a model after fully_shard() use check_step().
    """
    if not in_rank():
        return
    state = state_of(model)
    if any(rows is not None for _, _, _, rows in state):
        raise ValueError("rehearse.check_gradients: the model is sharded; compare its step by check_step()")
    _rehearse.check_gradients(state, loss_of_all, name, list(ranks), tolerance)


def check_step(model, reference, step_of_one, name="", ranks=(), tolerance=0.0):
    """Checks that the ranks' last step has changed `model` as step_of_one() changes `reference`.

    `reference` is a module of one process with the same names and, before the first check, the values from before the
    step; step_of_one() trains it with the whole batch, without collectives. Call it after the optimizer's step.
    """
    if in_rank():
        _rehearse.check_step(state_of(model), state_of(reference), step_of_one, name, list(ranks), tolerance)


def check_finite(model, name=""):
    """Checks that this rank's values and gradients contain no NaN and no Inf."""
    if in_rank():
        _rehearse.check_finite(state_of(model), name)


def saved_record(*parts):
    """A text about what this rank saves, to keep beside the checkpoint, for check_saved()."""
    return _rehearse.saved_record([state_of(part) for part in parts]) if in_rank() else ""


def check_saved(records, *parts):
    """Checks that this rank has loaded what was saved. `records`: the saved_record() of all ranks that saved."""
    if in_rank():
        _rehearse.check_saved(list(records), [state_of(part) for part in parts])


def state_of(model):
    """The tensors of `model` as the extension takes them: (name, tensor, is_buffer, rows)."""
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        ignored = set(model.parameters_to_ignore)
        return [each for each in state_of(model.module) if each[0] not in ignored]
    if isinstance(model, torch.nn.Module):
        parameters = [_part(name, value, False) for name, value in model.named_parameters()]
        return parameters + [_part(name, value, True) for name, value in model.named_buffers()]
    if isinstance(model, torch.optim.Optimizer):
        return [_part(name, value, False) for name, value in _values_of_optimizer(model)]
    if isinstance(model, dict):
        return [_part(name, value, False) for name, value in model.items()]
    raise TypeError(f"rehearse: expected a module, an optimizer or tensors by name, not {type(model).__name__}")


def _values_of_optimizer(optimizer):
    number = 0
    for group_number, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            if isinstance(value, (bool, int, float)):
                yield f"options of group {group_number}.{key}", torch.tensor(float(value), dtype=torch.float64)
        for parameter in group["params"]:
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    yield f"state of parameter {number}.{key}", value
            number += 1


def _part(name, value, is_buffer):
    dtensor = sys.modules.get("torch.distributed.tensor")
    if dtensor is None or not isinstance(value, dtensor.DTensor):
        return name, value, is_buffer, None
    sharded = [placement.dim for placement in value.placements if placement.is_shard()]
    local = value.to_local().detach().requires_grad_(value.requires_grad)
    if isinstance(value.grad, dtensor.DTensor):
        local.grad = value.grad.to_local()
    if not sharded:
        return name, local, is_buffer, None
    if any(dim != sharded[0] for dim in sharded):
        raise ValueError(f'rehearse: "{name}" is sharded in two dimensions ({value.placements}), which no check knows')
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    _, offset = compute_local_shape_and_global_offset(value.shape, value.device_mesh, value.placements)
    sizes, dim = list(value.shape), sharded[0]
    if dim != 0:  # rows of the tensor with that dimension in front
        gradient, local = local.grad, local.detach().movedim(dim, 0).requires_grad_(local.requires_grad)
        local.grad = gradient.movedim(dim, 0) if gradient is not None else None
        sizes.insert(0, sizes.pop(dim))
    return name, local, is_buffer, (sizes, offset[dim])
