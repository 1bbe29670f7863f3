# SPDX-License-Identifier: BSD-3-Clause
"""What names GPUs in torch.distributed and in modules for it, for --cuda and --cuda=device."""

import functools

import torch
import torch.distributed as dist
from torch.distributed import device_mesh
from torch.distributed import distributed_c10d as c10d
from torch.distributed.fsdp import _init_utils

from . import _cuda_batch_norm


def _without(names, function):
    """The function without these named arguments, which say where a GPU is."""

    @functools.wraps(function)
    def without(*arguments, **options):
        return function(*arguments, **{name: value for name, value in options.items() if name not in names})

    return without


def _barrier(of_torch):
    @functools.wraps(of_torch)
    def barrier(group=None, async_op=False, device_ids=None):
        return of_torch(group, async_op)

    return barrier


def _install_functions():
    instead = {
        "init_process_group": _without({"device_id"}, c10d.init_process_group),
        "new_group": _without({"device_id"}, c10d.new_group),
        "barrier": _barrier(c10d.barrier),
    }
    for name, function in instead.items():
        for module in (c10d, dist):
            setattr(module, name, function)


def _install_meshes():
    of_torch = device_mesh.DeviceMesh.__init__

    @functools.wraps(of_torch)
    def __init__(self, device_type, *arguments, **options):
        of_torch(self, "cpu" if device_type == "cuda" else device_type, *arguments, **options)

    device_mesh.DeviceMesh.__init__ = __init__


def _install_data_parallel():
    """The threads of one process would share the batch; here the module takes all of it."""

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    torch.nn.DataParallel.forward = forward


def _install_ddp():
    ddp = torch.nn.parallel.DistributedDataParallel
    of_torch = ddp.__init__

    @functools.wraps(of_torch)
    def __init__(self, module, device_ids=None, output_device=None, *arguments, **options):
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel device_ids {device_ids}: a rank has one GPU (rehearse --cuda), as torch "
                "recommends"
            )
        of_torch(self, module, None, None, *arguments, **options)

    ddp.__init__ = __init__
    ddp._passing_sync_batchnorm_handle = lambda self, module: None


def install(is_device):
    """`is_device`: tensors say that they are on "cuda", so what asks them finds it."""
    _install_functions()
    _install_data_parallel()
    if not is_device:
        _init_utils._check_module_states_for_sync_module_states = lambda states: None  # it asks for parameters on a GPU
        _install_meshes()
        _install_ddp()
    _cuda_batch_norm.install(is_device)
