# SPDX-License-Identifier: BSD-3-Clause
"""A script that is written for GPUs, on a machine without one (--cuda, --cuda=device).

"cuda" means the CPU, or a device of its own that has the CPU's memory. torch.cuda answers as on a node that has a GPU
for each rank: that is what stands here. The extension replaces the functions of torch that make devices.
"""

import functools
import os
import sys
import types

import torch
import torch.cuda.random
from torch.cuda import memory

import _rehearse

from . import _cuda_as_cpu, _cuda_streams, _ranks

_ASKED = os.environ.get("REHEARSE_CUDA")
_IS_DEVICE = _ASKED == "device"
_OPTION = "--cuda=device" if _IS_DEVICE else "--cuda"
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
    "ipc_collect": None,
    "_sleep": None,
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


class _Properties:
    name, major, minor, total_memory, multi_processor_count = _NAME, 8, 0, 80 * _GIB, 108
    is_integrated = is_multi_gpu_board = 0
    warp_size, max_threads_per_multi_processor, regs_per_multiprocessor = 32, 2048, 65536
    L2_cache_size, shared_memory_per_block, shared_memory_per_block_optin = 40 << 20, 48 << 10, 163 << 10

    def __repr__(self):
        return f"_CudaDeviceProperties(name='{self.name}', major=8, minor=0, total_memory={80 * 1024}MB)"


def _device_count():
    return max(int(os.environ.get("LOCAL_WORLD_SIZE", _ranks.current().size)), 1)


def _index_of(device):
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = device.rpartition(":")[2]
        return int(device) if device.isdigit() else _rehearse.current_cuda()
    if isinstance(device, torch.device) and not _IS_DEVICE:  # it has lost its number
        return int(os.environ.get("LOCAL_RANK", 0))
    index = getattr(device, "index", None)
    return _rehearse.current_cuda() if index is None else index


def _set_device(device):
    index = _index_of(device)
    if index >= _device_count():
        count = _device_count()
        raise RuntimeError(f"CUDA error: invalid device ordinal (rehearse --cuda: this node has {count}, not {index})")
    if index >= 0:
        _rehearse.set_current_cuda(index)


class _Device:
    """torch.cuda.device: makes another GPU the current one for a while."""

    def __init__(self, device):
        self.index, self._before = _index_of(device), 0

    def __enter__(self):
        self._before = _rehearse.current_cuda()
        if self.index >= 0:
            _rehearse.set_current_cuda(self.index)

    def __exit__(self, *_):
        _rehearse.set_current_cuda(self._before)
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
    cuda.current_device = _rehearse.current_cuda
    cuda.device = _Device
    cuda.device_of = lambda tensor: _Device(tensor.device if _IS_DEVICE else None)
    cuda.get_device_properties = lambda device=None: _Properties()
    nothing = types.SimpleNamespace(success=0)
    names = ("cudaProfilerStart", "cudaProfilerStop", "cudaHostRegister", "cudaHostUnregister")
    runtime = types.SimpleNamespace(**{name: lambda *_: 0 for name in names}, cudaError=nothing)
    cuda.cudart = lambda: runtime
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(cuda.nvtx, name, lambda *_, **__: 0)
    for name in ("Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool"):
        of_cpu = getattr(torch, f"{name}Tensor")
        setattr(cuda, f"{name}Tensor", functools.partial(_on_cuda, of_cpu) if _IS_DEVICE else of_cpu)


class _Zeros(dict):
    def __missing__(self, _):
        return 0


# CUDA's generator is not the CPU's: shuffles that all ranks draw alike come from that one. But where "cuda" means the
# CPU, the kernels that draw are the CPU's.
def _seed(seed):
    is_of_script = sys._getframe(1).f_globals.get("__name__") != "torch.random"
    if is_of_script and not _IS_DEVICE and seed != torch.initial_seed():
        _rehearse.note_habit(
            "gave torch.cuda.manual_seed() another seed than torch.manual_seed(): what a GPU would draw with it, as "
            "the masks of a dropout, the CPU draws with that of torch.manual_seed()"
        )
    _rehearse.cuda_generator().manual_seed(int(seed))


def _set_state(state, device="cuda"):
    if not _IS_DEVICE and _ranks.in_rank():
        _rehearse.note_habit(
            "set the state of CUDA's generator: a GPU would draw again what it drew then, but here the CPU draws, with "
            "its own generator; --cuda=device has both"
        )
    _rehearse.cuda_generator().set_state(state)


class _DefaultGenerators:
    """torch.cuda.default_generators: of each device of the rank."""

    def __len__(self):
        return _device_count()

    def __getitem__(self, index):
        if index >= _device_count():
            raise IndexError(f"this node has {_device_count()} GPUs")
        return _rehearse.cuda_generator() if _IS_DEVICE else torch.default_generator


# All that the rank has in flight, if NCCL carries it: its kernels are the GPU's, too.
def _synchronize(device=None):
    if _ranks.in_rank() and _ranks.current().uses_nccl:
        _rehearse.wait_for_works()


def _install_generators():
    generator = _rehearse.cuda_generator
    instead = {
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "seed": lambda: generator().seed(),
        "seed_all": lambda: generator().seed(),
        "initial_seed": lambda: generator().initial_seed(),
        "get_rng_state": lambda device="cuda": generator().get_state(),
        "get_rng_state_all": lambda: [generator().get_state() for _ in range(_device_count())],
        "set_rng_state": _set_state,
        "set_rng_state_all": lambda states: _set_state(list(states)[_rehearse.current_cuda()]),
    }
    for name, function in instead.items():
        for module in (torch.cuda, torch.cuda.random):
            setattr(module, name, function)
    torch.cuda.default_generators = _DefaultGenerators()
    torch.cuda.synchronize = _synchronize


def _on_cuda(of_cpu, *values):
    return of_cpu(*values).cuda()


def _install_device():
    """What asks for the name of a device that is not torch's own."""
    torch.utils.backend_registration._privateuse1_backend_name = "cuda"
    torch.backends.cudnn.is_acceptable = lambda tensor: False
    torch.cuda._initialized = True  # checkpoints save what a GPU draws with
    torch.cuda.is_initialized = lambda: True
    torch.cuda.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16, torch.float32]
    torch.Tensor.is_cuda = property(lambda self: self.device.type == "cuda")
    torch.Tensor.cuda = _to_cuda


def _to_cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
    return self.to(torch.device("cuda", _index_of(device)), non_blocking=non_blocking, memory_format=memory_format)


def is_asked():
    return _ASKED is not None


def types_of_devices():
    return ["cpu", "cuda"] if _IS_DEVICE else ["cpu"]


def begin_rank():
    if _IS_DEVICE and _device_count() > _rehearse.CUDA_MOST:
        raise RuntimeError(
            f"rehearse --cuda=device: this node has {_device_count()} ranks, and torch numbers at most "
            f"{_rehearse.CUDA_MOST} devices; use --cuda"
        )
    _rehearse.begin_cuda_of_rank(_device_count())
    _refuse_kernels()
    what = "gave the CPU's memory to" if _IS_DEVICE else "took the CPU for"
    _rehearse.note_habit(f'{what} "cuda" ({_OPTION})')


def _refuse_kernels():
    """What the script's libraries have imported by now."""
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

    _rehearse.let_cuda_be_device() if _IS_DEVICE else _rehearse.let_cuda_be_cpu()
    _install_answers()
    _install_generators()
    _cuda_streams.install()
    _answer(torch.accelerator, _ANSWERS_OF_MEMORY)
    torch.accelerator.synchronize = _synchronize
    torch.Tensor.pin_memory = lambda self, device=None: self
    torch.Tensor.record_stream = lambda self, stream: None
    if _IS_DEVICE:
        _install_device()
    else:
        _cuda_as_cpu.install()
    _cuda_distributed.install(_IS_DEVICE)
