# SPDX-License-Identifier: BSD-3-Clause
"""What scripts ask torch.cuda, torch.accelerator and their like with --cuda, and what they get. The forms that make
tensors are in test_cuda.py."""

import contextlib
import os
import warnings

os.environ.setdefault("REHEARSE_CUDA", "1")
IS_DEVICE = os.environ["REHEARSE_CUDA"] == "device"
TYPE = "cuda" if IS_DEVICE else "cpu"

import pytest
import torch
from ranks import on_ranks
from torch import nn


with contextlib.suppress(ImportError):  # setuptools may be missing
    import torch.utils.cpp_extension
try:
    import triton
except ImportError:
    triton = None


def _within(context, function):
    with context:
        return function()


def _product(**options):
    return (torch.ones(2, 2, device="cuda", **options) @ torch.ones(2, 2, device="cuda", **options)).dtype


def _scaled_step():
    scaler, model = torch.amp.GradScaler("cuda"), nn.Linear(2, 1).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(torch.ones(1, 2, device="cuda")).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return scaler.is_enabled(), scaler.get_scale()


def _on_a_stream():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        value = torch.ones(2, device="cuda") * 2
    value.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(stream)
    return value.sum().item()


def _time_between_events():
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) >= 0 and end.query()


def _ranges_of_nvtx():
    torch.cuda.nvtx.range_push("step")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("step"):
        torch.cuda.nvtx.mark("here")


def _flags_of_back_ends():
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    return torch.backends.cudnn.benchmark, torch.backends.cuda.matmul.allow_tf32


def _attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query = torch.ones(1, 1, 4, 8, device="cuda")
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        return nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True).shape


def _fused_step():
    weight = nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.AdamW([weight], fused=True)
    weight.grad = torch.ones(2, device="cuda")
    optimizer.step()
    return weight.detach().tolist() != [1, 1]


def _recomputed():
    value = torch.ones(8, device="cuda", requires_grad=True)
    layer = torch.utils.checkpoint.checkpoint(lambda x: torch.dropout(x, 0.5, True), value, use_reentrant=False)
    layer.sum().backward()
    return bool((value.grad == layer.detach()).all())


def _device_of_fake():
    with torch._subclasses.fake_tensor.FakeTensorMode():
        return torch.ones(2, device="cuda:1").device.type


# By name: what a script writes, and what it gets in a world of two ranks.
ANSWERS = {
    "device of a text": (lambda: torch.device("cuda").type, TYPE),
    "device of a text with a number": (lambda: torch.device("cuda:1") == torch.device("cuda"), not IS_DEVICE),
    "device of a type and a number": (lambda: torch.device("cuda", 1).type, TYPE),
    "device of a number": (lambda: torch.device(1).type, TYPE),
    "device of a tensor": (lambda: torch.ones(2, device="cuda:1").device == torch.device("cuda:1"), True),
    "number of a tensor's device": (lambda: torch.ones(2, device="cuda:1").get_device(), 1 if IS_DEVICE else 0),
    "is_cuda": (lambda: torch.ones(2, device="cuda").is_cuda, True),
    "with a device": (lambda: _within(torch.device("cuda:1"), lambda: torch.ones(2).device.type), TYPE),
    "autocast": (lambda: _within(torch.autocast("cuda"), _product), torch.float16),
    "autocast of a type": (lambda: _within(torch.autocast("cuda", dtype=torch.bfloat16), _product), torch.bfloat16),
    "autocast that is off": (lambda: _within(torch.autocast("cuda", enabled=False), _product), torch.float32),
    "autocast of torch.cuda": (lambda: _within(torch.cuda.amp.autocast(), _product), torch.float16),
    "is_autocast_enabled": (lambda: torch.is_autocast_enabled("cuda"), False),
    "is_autocast_enabled within": (
        lambda: _within(torch.autocast("cuda"), lambda: torch.is_autocast_enabled("cuda")),
        True,
    ),
    "gradient scaler": (_scaled_step, (True, 65536.0)),
    "gradient scaler of torch.cuda": (lambda: torch.cuda.amp.GradScaler().is_enabled(), True),
    "set_device of a number": (lambda: torch.cuda.set_device(1) or torch.cuda.current_device(), 1),
    "set_device of a text": (lambda: torch.cuda.set_device("cuda:0") or torch.cuda.current_device(), 0),
    "set_device of a device": (lambda: torch.cuda.set_device(torch.device("cuda")), None),
    "a device for a while": (lambda: _within(torch.cuda.device(1), torch.cuda.current_device), 1),
    "device_count": (lambda: torch.cuda.device_count(), 2),
    "is_available": (lambda: torch.cuda.is_available(), True),
    "is_initialized": (lambda: torch.cuda.is_initialized(), IS_DEVICE),
    "get_device_name": (lambda: torch.cuda.get_device_name(0), "the CPU, for which --cuda stands"),
    "get_device_properties": (lambda: torch.cuda.get_device_properties(0).total_memory, 80 << 30),
    "get_device_capability": (lambda: torch.cuda.get_device_capability(), (8, 0)),
    "get_arch_list": (lambda: torch.cuda.get_arch_list(), ["sm_80"]),
    "is_bf16_supported": (lambda: torch.cuda.is_bf16_supported(), True),
    "can_device_access_peer": (lambda: torch.cuda.can_device_access_peer(0, 1), True),
    "synchronize": (lambda: torch.cuda.synchronize(), None),
    "synchronize a device": (lambda: torch.cuda.synchronize(device="cuda:0"), None),
    "empty_cache": (lambda: torch.cuda.empty_cache(), None),
    "ipc_collect": (lambda: torch.cuda.ipc_collect(), None),
    "memory_allocated": (lambda: torch.cuda.memory_allocated(), 0),
    "max_memory_allocated": (lambda: torch.cuda.max_memory_allocated("cuda:0"), 0),
    "memory_reserved": (lambda: torch.cuda.memory_reserved(0), 0),
    "reset_peak_memory_stats": (lambda: torch.cuda.reset_peak_memory_stats(), None),
    "memory_stats": (lambda: torch.cuda.memory_stats()["allocated_bytes.all.current"], 0),
    "memory_summary": (lambda: torch.cuda.memory_summary(), "no memory of a GPU\n"),
    "mem_get_info": (lambda: torch.cuda.mem_get_info(), (80 << 30, 80 << 30)),
    "set_per_process_memory_fraction": (lambda: torch.cuda.set_per_process_memory_fraction(0.5, 0), None),
    "manual_seed": (lambda: torch.cuda.manual_seed(1) or torch.cuda.initial_seed(), 1),
    "manual_seed_all": (lambda: torch.cuda.manual_seed_all(2) or torch.cuda.initial_seed(), 2),
    "get_rng_state": (lambda: torch.cuda.get_rng_state().dtype, torch.uint8),
    "set_rng_state_all": (lambda: torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all()), None),
    "fork_rng": (lambda: _within(torch.random.fork_rng(devices=[0]), lambda: torch.rand(1).numel()), 1),
    "stream": (_on_a_stream, 4),
    "events": (_time_between_events, True),
    "current_stream": (lambda: torch.cuda.current_stream().synchronize(), None),
    "default_stream": (lambda: torch.cuda.default_stream() == torch.cuda.current_stream(), True),
    "pin_memory": (lambda: torch.ones(2).pin_memory().sum().item(), 2),
    "pinned factory": (lambda: torch.ones(2, pin_memory=True).sum().item(), 2),
    "pinned batches": (
        lambda: [each.tolist() for each in torch.utils.data.DataLoader(range(2), pin_memory=True)],
        [[0], [1]],
    ),
    "nvtx": (_ranges_of_nvtx, None),
    "flags of back ends": (_flags_of_back_ends, (True, True)),
    "attention": (_attention, (1, 1, 4, 8)),
    "fused step": (_fused_step, True),
    "recomputation": (_recomputed, True),
    "packed sequence": (lambda: nn.utils.rnn.pack_sequence([torch.ones(2)]).cuda().data.tolist(), [1, 1]),
    "data parallel": (lambda: nn.DataParallel(nn.Linear(2, 2).cuda(), [0])(torch.ones(1, 2).cuda()).shape, (1, 2)),
    "norm of gradients": (
        lambda: nn.utils.clip_grad_norm_([nn.Parameter(torch.ones(2, device="cuda"))], 1.0).item(),
        0,
    ),
    "storage": (lambda: torch.ones(2).untyped_storage().cuda().nbytes(), 8),
    "fake tensor": (_device_of_fake, TYPE),
    "current_accelerator": (lambda: torch.accelerator.current_accelerator().type, TYPE),
    "accelerator is_available": (lambda: torch.accelerator.is_available(), True),
    "accelerator device_count": (lambda: torch.accelerator.device_count(), 2),
    "set_device_index": (
        lambda: torch.accelerator.set_device_index(1) or torch.accelerator.current_device_index(),
        1,
    ),
    "accelerator synchronize": (lambda: torch.accelerator.synchronize(), None),
    "get_device_module": (lambda: torch.get_device_module("cuda").current_device(), 0),
    "get_device_module of a device": (lambda: torch.get_device_module(torch.device("cuda")) is torch.cuda, True),
}

# What is refused, with a part of the error.
REFUSED = {
    "a graph": (lambda: torch.cuda.CUDAGraph(), "no CUDA graphs"),
    "graphed functions": (
        lambda: torch.cuda.make_graphed_callables(nn.Linear(2, 2), (torch.ones(1, 2),)),
        "no CUDA graphs",
    ),
    "a device that is not there": (lambda: torch.cuda.set_device(2), "this node has 2, not 2"),
}

if triton is not None:

    @triton.jit
    def _of_triton(pointer):
        pass

    REFUSED["a kernel of Triton"] = (lambda: _of_triton[(1,)](torch.ones(2)), "kernels of Triton")
if hasattr(torch.utils, "cpp_extension"):
    REFUSED["an extension"] = (
        lambda: torch.utils.cpp_extension.load_inline("k", "", "__global__ void k() {}"),
        "kernels of Triton and of extensions",
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name):
    ask, answer = ANSWERS[name]

    def body(rank):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert ask() == answer

    on_ranks(body, ranks=2)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    ask, why = REFUSED[name]

    def body(rank):
        with pytest.raises(Exception, match=why):
            ask()

    on_ranks(body, ranks=2)
