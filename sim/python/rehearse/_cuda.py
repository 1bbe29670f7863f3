# SPDX-License-Identifier: BSD-3-Clause
"""A script that is written for GPUs, on a machine without one (--cuda).

"cuda" means the CPU: a device that a script names is the CPU's, and torch.cuda answers as on a node that has a GPU for
each rank. The extension replaces the functions of torch that make devices; what stands here answers for torch.cuda.
"""

import contextlib
import functools
import os
import sys
import types

import torch
import torch.cuda.random
from torch.cuda import memory

import _rehearse

from . import _cuda_streams, _ranks

_IS_ASKED = "REHEARSE_CUDA" in os.environ
_GIB = 1 << 30
_NAME = "the CPU, for which --cuda stands"

_ANSWERS = {
    "is_available": True,
    "is_initialized": False,  # checkpoints would save what a GPU keeps
    "init": None,
    "_lazy_init": None,
    "get_device_name": _NAME,
    "get_device_capability": (8, 0),
    "get_arch_list": ["sm_80"],
    "can_device_access_peer": True,
    "is_bf16_supported": True,
    "is_tf32_supported": True,
    "synchronize": None,
    "ipc_collect": None,
    "set_sync_debug_mode": None,
    "get_sync_debug_mode": 0,
    "utilization": 0,
    "memory_usage": 0,
    "temperature": 0,
    "power_draw": 0,
    "clock_rate": 0,
    "is_current_stream_capturing": False,
}

_ANSWERS_OF_MEMORY = {
    "empty_cache": None,
    "mem_get_info": (80 * _GIB, 80 * _GIB),
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "memory_reserved": 0,
    "max_memory_reserved": 0,
    "memory_cached": 0,
    "max_memory_cached": 0,
    "reset_peak_memory_stats": None,
    "reset_max_memory_allocated": None,
    "reset_max_memory_cached": None,
    "reset_accumulated_memory_stats": None,
    "set_per_process_memory_fraction": None,
    "memory_summary": "no memory of a GPU\n",
    "_record_memory_history": None,
    "_dump_snapshot": None,
}


class _OfRank:
    """What a rank's process keeps for CUDA."""

    def __init__(self):
        self.index, self.stream = 0, None
        self.generator = torch.Generator()
        self.generator.manual_seed(0)


def of_rank():
    rank = _ranks.current()
    if rank.cuda is None:
        rank.cuda = _OfRank()
    return rank.cuda


class _Properties:
    name, major, minor, total_memory, multi_processor_count = _NAME, 8, 0, 80 * _GIB, 108
    is_integrated = is_multi_gpu_board = 0
    warp_size, max_threads_per_multi_processor, regs_per_multiprocessor = 32, 2048, 65536
    L2_cache_size, shared_memory_per_block, shared_memory_per_block_optin = 40 << 20, 48 << 10, 163 << 10

    def __repr__(self):
        return f"_CudaDeviceProperties(name='{self.name}', major=8, minor=0, total_memory={80 * 1024}MB)"


def _device_count():
    return max(int(os.environ.get("LOCAL_WORLD_SIZE", _ranks.current().size)), 1)


# A torch.device has lost its number, so it is that of the rank's own GPU.
def _index_of(device):
    if isinstance(device, int):
        return device
    if isinstance(device, str) and ":" in device:
        return int(device.rpartition(":")[2])
    if isinstance(device, torch.device):
        return int(os.environ.get("LOCAL_RANK", 0))
    return getattr(device, "index", None) or of_rank().index


def _set_device(device):
    index = _index_of(device)
    if index >= _device_count():
        count = _device_count()
        raise RuntimeError(f"CUDA error: invalid device ordinal (rehearse --cuda: this node has {count}, not {index})")
    if index >= 0:
        of_rank().index = index


class _Device:
    """torch.cuda.device: makes another GPU the current one for a while."""

    def __init__(self, device):
        self.index, self._before = _index_of(device), 0

    def __enter__(self):
        self._before, of_rank().index = of_rank().index, self.index if self.index >= 0 else of_rank().index

    def __exit__(self, *_):
        of_rank().index = self._before
        return False


def _answer(module, answers):
    for name, answer in answers.items():
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, functools.wraps(original)(lambda *_, _answer=answer, **__: _answer))


def _install_answers():
    cuda = torch.cuda
    _answer(cuda, _ANSWERS)
    for module in (cuda, memory):
        _answer(module, _ANSWERS_OF_MEMORY)
        module.memory_stats = lambda device=None: _Zeros()
        module.memory_stats_as_nested_dict = lambda device=None: {}
        module.memory_snapshot = lambda *_, **__: []
    cuda.device_count = _device_count
    cuda.set_device = _set_device
    cuda.current_device = lambda: of_rank().index
    cuda.device = _Device
    cuda.device_of = lambda tensor: _Device(None)
    cuda.get_device_properties = lambda device=None: _Properties()
    nothing = types.SimpleNamespace(success=0)
    names = ("cudaProfilerStart", "cudaProfilerStop", "cudaHostRegister", "cudaHostUnregister")
    runtime = types.SimpleNamespace(**{name: lambda *_: 0 for name in names}, cudaError=nothing)
    cuda.cudart = lambda: runtime
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(cuda.nvtx, name, lambda *_, **__: 0)
    for name in ("Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool"):
        setattr(cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))


class _Zeros(dict):
    def __missing__(self, _):
        return 0


# CUDA's generator is not the CPU's: shuffles that all ranks draw alike come from that one. But the kernels that draw
# are the CPU's here.
def _seed(seed):
    if sys._getframe(1).f_globals.get("__name__") != "torch.random" and seed != torch.initial_seed():
        _rehearse.note_habit(
            "gave torch.cuda.manual_seed() another seed than torch.manual_seed(): what a GPU would draw with it, as "
            "the masks of a dropout, the CPU draws with that of torch.manual_seed()"
        )
    of_rank().generator.manual_seed(int(seed))


# The state that a GPU saves is a seed and an offset, in 16 bytes.
def _set_state(state, device="cuda"):
    generator = of_rank().generator
    if state.numel() != 16:
        generator.set_state(state)
        return
    seed, offset = state.view(torch.int64).tolist()
    generator.manual_seed((seed + (offset << 32)) % (1 << 63))


def _install_generators():
    generator = lambda: of_rank().generator
    instead = {
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "seed": lambda: generator().seed(),
        "seed_all": lambda: generator().seed(),
        "initial_seed": lambda: generator().initial_seed(),
        "get_rng_state": lambda device="cuda": generator().get_state(),
        "get_rng_state_all": lambda: [generator().get_state() for _ in range(_device_count())],
        "set_rng_state": _set_state,
        "set_rng_state_all": lambda states: _set_state(list(states)[of_rank().index]),
    }
    for name, function in instead.items():
        for module in (torch.cuda, torch.cuda.random):
            setattr(module, name, function)
    of_torch = torch.random.fork_rng

    @contextlib.contextmanager
    @functools.wraps(of_torch)
    def fork_rng(devices=None, *arguments, **options):
        with of_torch((), *arguments, **options):
            yield

    torch.random.fork_rng = fork_rng


def _install_accelerator():
    accelerator = torch.accelerator
    cpu = torch.device("cpu")
    _answer(accelerator, {"is_available": True, "synchronize": None, "empty_cache": None})
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        _answer(accelerator, {name: 0})
    accelerator.current_accelerator = lambda check_available=False: cpu
    accelerator.device_count = _device_count
    accelerator.set_device_index = accelerator.set_device_idx = _set_device
    accelerator.current_device_index = accelerator.current_device_idx = lambda: of_rank().index
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
    torch.Tensor.pin_memory = lambda self, device=None: self
    torch.Tensor.record_stream = lambda self, stream: None
    for storage in (torch.UntypedStorage, torch.TypedStorage):
        storage.cuda = lambda self, device=None, non_blocking=False: self

    def restore(storage, location):
        return storage if str(location).startswith("cuda") else None

    torch.serialization.register_package(5, lambda storage: None, restore)


def _install_autocast():
    of_torch = torch.autocast.__init__

    @functools.wraps(of_torch)
    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        is_cuda = device_type == "cuda"
        dtype = torch.float16 if is_cuda and dtype is None else dtype
        of_torch(self, "cpu" if is_cuda else device_type, dtype, enabled, cache_enabled)

    torch.autocast.__init__ = __init__


def is_asked():
    return _IS_ASKED


def refuse_kernels():
    """In each rank that begins: what the script's libraries have imported by now."""
    triton = sys.modules.get("triton.runtime.jit")
    if triton is not None:
        triton.JITFunction.run = _refused_kernel
    extensions = sys.modules.get("torch.utils.cpp_extension")
    if extensions is not None:
        extensions.load = extensions.load_inline = _refused_kernel


def _refused_kernel(*_, **__):
    raise RuntimeError("rehearse --cuda: kernels of Triton and of extensions run on a GPU only; use operators of torch")


def install():
    """Once, before the first world."""
    from . import _cuda_distributed  # imports FSDP, which runs without --cuda need not pay for

    _rehearse.let_cuda_be_cpu()
    _install_answers()
    _install_generators()
    _cuda_streams.install(of_rank)
    _install_accelerator()
    _install_tensors()
    _install_autocast()
    _cuda_distributed.install()
