# SPDX-License-Identifier: BSD-3-Clause
"""SyncBatchNorm of --cuda: the five kernels that LibTorch has for GPUs only. torch's own function calls them, and makes
its collectives between them. The formulas are those of aten/src/ATen/native/cuda/Normalization.cuh."""

import inspect
import sys
import textwrap

import torch

_library = None  # keeps the kernels registered


def _dims(x):
    return [0, *range(2, x.dim())]


def _like(values, x):
    return values.view(1, -1, *([1] * (x.dim() - 2)))


def _stats(x, eps):
    x = x.float() if x.dtype in (torch.half, torch.bfloat16) else x
    return x.mean(_dims(x)), (x.var(_dims(x), unbiased=False) + eps).rsqrt()


def _gather_stats(x, mean, invstd, running_mean, running_var, momentum, eps, counts):
    counts = counts.view(-1, 1).to(mean.dtype)
    total = counts.sum()
    whole = (mean * counts).sum(0) / total
    of_parts = 1 / invstd.square() - eps + (mean - whole).square()
    variance = (of_parts * counts).sum(0) / total
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(whole, alpha=momentum)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_(variance * (total / (total - 1)), alpha=momentum)
    return whole, (variance + eps).rsqrt()


def _elements(x, weight, bias, mean, invstd, eps):
    y = (x - _like(mean, x)) * _like(invstd, x)
    if weight is not None:
        y = y * _like(weight, x)
    if bias is not None:
        y = y + _like(bias, x)
    return y.to(x.dtype)


def _backward_reduce(gradient, x, mean, invstd, weight, input_g, weight_g, bias_g):
    sum_dy = gradient.sum(_dims(x))
    sum_dy_xmu = (gradient * (x - _like(mean, x))).sum(_dims(x))
    empty = torch.empty(0)
    return sum_dy, sum_dy_xmu, sum_dy_xmu * invstd if weight_g else empty, sum_dy.clone() if bias_g else empty


def _backward_elements(gradient, x, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    total = count.sum().to(mean.dtype)
    scale = invstd if weight is None else invstd * weight
    centred = (x - _like(mean, x)) * _like(invstd.square() * sum_dy_xmu / total, x)
    return ((gradient - _like(sum_dy / total, x) - centred) * _like(scale, x)).to(x.dtype)


def _accept_cpu():
    """torch's forward() accepts GPUs by a list of names."""
    module = sys.modules[torch.nn.SyncBatchNorm.__module__]
    lines, begin = inspect.getsourcelines(torch.nn.SyncBatchNorm.forward)
    text = "\n" * (begin - 1) + textwrap.dedent("".join(lines))  # tracebacks show torch's lines
    changed = text.replace('"cuda",', '"cuda", "cpu",', 1)
    if changed == text:
        raise RuntimeError("rehearse --cuda: SyncBatchNorm of this torch is not as this version of Rehearse knows it")
    names = {}
    exec(compile(changed, inspect.getsourcefile(torch.nn.SyncBatchNorm), "exec"), vars(module), names)
    torch.nn.SyncBatchNorm.forward = names["forward"]


def install(is_device):
    global _library
    _library = torch.library.Library("aten", "IMPL")
    for name, kernel in (
        ("batch_norm_stats", _stats),
        ("batch_norm_gather_stats_with_counts", _gather_stats),
        ("batch_norm_elemt", _elements),
        ("batch_norm_backward_reduce", _backward_reduce),
        ("batch_norm_backward_elemt", _backward_elements),
    ):
        _library.impl(name, kernel, "PrivateUse1" if is_device else "CPU")
    if not is_device:
        _accept_cpu()
