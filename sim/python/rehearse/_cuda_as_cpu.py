# SPDX-License-Identifier: BSD-3-Clause
"""--cuda: tensors, autocast, forks of generators and torch.accelerator, where "cuda" means the CPU."""

import contextlib
import functools

import torch

import _rehearse

from . import _cuda_streams


def _install_accelerator():
    """torch.accelerator has no accelerator, but answers as torch.cuda does."""
    accelerator, cuda, cpu = torch.accelerator, torch.cuda, torch.device("cpu")
    accelerator.is_available = cuda.is_available
    accelerator.current_accelerator = lambda check_available=False: cpu
    accelerator.device_count = cuda.device_count
    accelerator.set_device_index = accelerator.set_device_idx = cuda.set_device
    accelerator.current_device_index = accelerator.current_device_idx = cuda.current_device
    accelerator.current_stream = lambda device=None: _cuda_streams.current()
    of_torch = torch.get_device_module

    @functools.wraps(of_torch)
    def get_device_module(device=None):
        is_cuda = device is None or isinstance(device, torch.device) or device.startswith("cuda")
        return torch.cuda if is_cuda else of_torch(device)

    torch.get_device_module = get_device_module


# A copy, as from a GPU: what the script keeps must not follow later changes.
def _to_cpu(self, memory_format=torch.preserve_format):
    return self.to("cpu", copy=True, memory_format=memory_format)


def _to_cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
    return self.to(torch.device("cpu"), memory_format=memory_format)


def _copy_between_devices():
    """Tensor.to(device) copies, as between a CPU and a GPU.

    But a leaf that requires a gradient stays itself if it may be on the GPU already: an optimizer is to take it.
    """
    of_torch = torch.Tensor.to

    @functools.wraps(of_torch)
    def to(self, *arguments, **options):
        result = of_torch(self, *arguments, **options)
        if result is not self:
            return result
        device = arguments[0] if arguments else options.get("device", options.get("other"))
        if device is None or type(device) is torch.dtype:
            return result
        if self.requires_grad and self.is_leaf and device != "cpu":
            return result
        return self.clone()

    torch.Tensor.to = to


def _install_tensors():
    torch.Tensor.cpu = _to_cpu
    torch.Tensor.cuda = _to_cuda
    _copy_between_devices()
    torch.Tensor.is_cuda = property(lambda self: self.device.type == "cpu")
    torch.Tensor.get_device = lambda self: _rehearse.current_cuda()
    for storage in (torch.UntypedStorage, torch.TypedStorage):
        storage.cuda = lambda self, device=None, non_blocking=False: self

    def restore(storage, location):
        return storage if str(location).startswith("cuda") else None

    torch.serialization.register_package(5, lambda storage: None, restore)


def _install_fork_rng():
    of_torch = torch.random.fork_rng

    @contextlib.contextmanager
    @functools.wraps(of_torch)
    def fork_rng(devices=None, *arguments, **options):
        with of_torch((), *arguments, **options):
            yield

    torch.random.fork_rng = fork_rng


def _install_autocast():
    of_torch = torch.autocast.__init__

    @functools.wraps(of_torch)
    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        is_cuda = device_type == "cuda"
        dtype = torch.float16 if is_cuda and dtype is None else dtype
        of_torch(self, "cpu" if is_cuda else device_type, dtype, enabled, cache_enabled)

    torch.autocast.__init__ = __init__


def install():
    """After torch.cuda has its answers."""
    _install_accelerator()
    _install_tensors()
    _install_autocast()
    _install_fork_rng()
