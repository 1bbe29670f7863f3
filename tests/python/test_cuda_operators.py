# SPDX-License-Identifier: BSD-3-Clause
"""--cuda=device: operators on "cuda" give the values of the CPU."""

import copy
import os
import pickle

os.environ["REHEARSE_CUDA"] = "device"

import pytest
import torch
import torch.nn.functional as F
from ranks import on_ranks, values_of
from torch import nn
from torch.nn.utils import rnn


def _trained(module, *inputs, steps=2):
    """The outputs of a module, then the gradients of its parameters and inputs, and its parameters after some steps."""

    def of(device):
        torch.manual_seed(3)
        own = copy.deepcopy(module).to(device)
        for index, parameter in enumerate(own.parameters()):
            parameter.data.copy_(values_of(*parameter.shape) / (3 + index))
        optimizer = torch.optim.SGD(own.parameters(), lr=0.05, momentum=0.9) if list(own.parameters()) else None
        given = [each.clone().to(device) for each in inputs]
        given = [each.requires_grad_() if each.is_floating_point() else each for each in given]
        for _ in range(steps):
            out = own(*given)
            out = out[0] if isinstance(out, tuple) else out
            out.square().sum().backward()
            gradients = [each.grad.to_dense() for each in own.parameters() if each.grad is not None]
            gradients = [each.clone() for each in gradients]
            if optimizer is not None:
                optimizer.step()
                optimizer.zero_grad()
        return [out, *gradients, *(each.grad for each in given if each.grad is not None), *own.parameters()]

    return of


def _set(index):
    def of(device):
        value = torch.zeros(3, device=device)
        value[index if isinstance(index, int) else index.to(device)] = 5.0
        return value

    return of


def _packed(device):
    packed = rnn.pack_padded_sequence(values_of(3, 2, 4).to(device), torch.tensor([3, 2]))
    torch.manual_seed(1)
    return rnn.pad_packed_sequence(nn.LSTM(4, 3).to(device)(packed)[0])[0]


def _second_gradient(device):
    x = values_of(4).to(device).requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)


def _adam(**options):
    def of(device):
        weight = nn.Parameter(values_of(4).to(device))
        optimizer = torch.optim.AdamW([weight], **options)
        for _ in range(3):
            weight.grad = values_of(4).to(device)
            optimizer.step()
        return weight

    return of


def _lbfgs(device):
    weight = nn.Parameter(values_of(3).to(device))
    optimizer = torch.optim.LBFGS([weight])

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weight


def _sparse(device):
    indices = torch.tensor([[0, 2, 0]], device=device)
    sparse = torch.sparse_coo_tensor(indices, values_of(3).to(device), (4,))
    assert sparse.device.type == sparse.coalesce().indices().device.type == device
    sparse.add_(sparse)
    sparse.add_(sparse.clone())
    return [sparse.to_dense(), sparse.coalesce().values(), (sparse * 2).to_dense(), sparse.cpu().to_dense()]


def _resized(device):
    out = torch.empty(0, device=device)
    torch.add(values_of(5).to(device), 1, out=out)
    view = out.view(5)[1:]
    out.mul_(2)
    storage = out.untyped_storage()
    storage.resize_(0)
    storage.resize_(20)
    out.fill_(3)
    return [out, view]


def _x(*shape):
    return lambda device: values_of(*shape).to(device)


def _on(function, *shapes, **options):
    """A function of tensors of these shapes."""
    return lambda device: function(*(values_of(*shape).to(device) for shape in shapes), **options)


QKV = ((1, 2, 4, 8),) * 3

# What gives the same values on "cuda" as on the CPU.
OPERATORS = {
    "linear": _trained(nn.Linear(4, 3), values_of(2, 4)),
    "LSTM": _trained(nn.LSTM(4, 3), values_of(3, 2, 4)),
    "LSTM of layers and directions": _trained(nn.LSTM(4, 3, 2, bidirectional=True), values_of(3, 2, 4)),
    "LSTM without biases": _trained(nn.LSTM(4, 3, bias=False), values_of(3, 2, 4)),
    "LSTM cell": _trained(nn.LSTMCell(4, 3), values_of(2, 4)),
    "LSTM of a packed sequence": _packed,
    "GRU": _trained(nn.GRU(4, 3), values_of(3, 2, 4)),
    "GRU of layers and directions": _trained(nn.GRU(4, 3, 2, bidirectional=True), values_of(3, 2, 4)),
    "GRU cell": _trained(nn.GRUCell(4, 3, bias=False), values_of(2, 4)),
    "RNN": _trained(nn.RNN(4, 3), values_of(3, 2, 4)),
    "attention": _trained(nn.MultiheadAttention(8, 2, batch_first=True), *[values_of(2, 3, 8)] * 3),
    "encoder": _trained(nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True), values_of(2, 3, 8)),
    "encoder that is evaluated": lambda device: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    .apply(lambda module: [each.data.fill_(0.1) for each in module.parameters()])
    .to(device)
    .eval()(values_of(2, 3, 8).to(device)),
    "convolution": _trained(nn.Conv2d(2, 3, 3, padding=1), values_of(2, 2, 5, 5)),
    "convolution 1d": _trained(nn.Conv1d(2, 3, 3), values_of(1, 2, 8)),
    "convolution 3d": _trained(nn.Conv3d(2, 3, 3), values_of(1, 2, 4, 4, 4)),
    "transposed convolution": _trained(nn.ConvTranspose2d(2, 3, 3, stride=2), values_of(1, 2, 4, 4)),
    "depthwise convolution": _trained(nn.Conv2d(4, 4, 3, groups=4, bias=False), values_of(1, 4, 6, 6)),
    "channels last": _trained(
        nn.Conv2d(4, 4, 3).to(memory_format=torch.channels_last),
        values_of(1, 4, 6, 6).to(memory_format=torch.channels_last),
    ),
    "batch norm": _trained(nn.BatchNorm2d(2), values_of(3, 2, 3, 3)),
    "layer norm": _trained(nn.LayerNorm(4), values_of(2, 4)),
    "group norm": _trained(nn.GroupNorm(2, 4), values_of(2, 4, 3)),
    "instance norm": _trained(nn.InstanceNorm2d(4), values_of(2, 4, 3, 3)),
    "RMS norm": _trained(nn.RMSNorm(4), values_of(2, 4)),
    "embedding": _trained(nn.Embedding(10, 3), torch.tensor([1, 2, 1])),
    "sparse embedding": _trained(nn.Embedding(10, 3, sparse=True), torch.tensor([1, 2, 1])),
    "embedding bag": _trained(nn.EmbeddingBag(10, 3), torch.tensor([[1, 2], [3, 4]])),
    "max pooling": _trained(nn.MaxPool2d(2), values_of(1, 2, 5, 5)),
    "adaptive pooling": _trained(nn.AdaptiveAvgPool2d(2), values_of(1, 2, 5, 5)),
    "activations": _trained(nn.Sequential(nn.GELU(), nn.SiLU(), nn.Softmax(1), nn.PReLU()), values_of(2, 5)),
    "interpolation": _on(F.interpolate, (1, 2, 4, 4), scale_factor=2, mode="bilinear"),
    "grid sample": _on(F.grid_sample, (1, 2, 4, 4), (1, 3, 3, 2)),
    "flash attention": _on(F.scaled_dot_product_attention, *QKV, is_causal=True),
    "attention with a mask": lambda device: F.scaled_dot_product_attention(
        *(values_of(*shape).to(device) for shape in QKV), attn_mask=torch.ones(4, 4, device=device).tril().bool()
    ),
    "cross entropy": lambda device: F.cross_entropy(values_of(3, 5).to(device), torch.tensor([1, 0, 4]).to(device)),
    "CTC": lambda device: F.ctc_loss(
        values_of(5, 2, 4).log_softmax(2).to(device),
        torch.ones(2, 3, dtype=torch.long, device=device),
        torch.tensor([5, 5]),
        torch.tensor([3, 3]),
    ),
    "unique": _on(torch.unique, (30,), return_counts=True),
    "topk": _on(torch.topk, (9,), k=3),
    "sort": _on(torch.sort, (9,)),
    "nonzero": _on(torch.nonzero, (9,)),
    "where": _on(lambda x: torch.where(x > 0, x, 1.0), (9,)),
    "scatter": lambda device: torch.zeros(3, device=device).scatter_add_(
        0, torch.tensor([0, 1], device=device), torch.ones(2, device=device)
    ),
    "an index of the CPU": lambda device: values_of(4).to(device)[torch.tensor([1, 3])],
    "set by an index": _set(torch.tensor([1])),
    "set by a mask": _set(torch.tensor([True, False, True])),
    "set by a number": _set(1),
    "a scalar of the CPU": lambda device: values_of(3).to(device) * torch.tensor(2.0) + 1,
    "types": lambda device: torch.ones(2, device=device, dtype=torch.int32) / 2 + 1.5,
    "einsum": _on(lambda x, y: torch.einsum("ij,jk->ik", x, y), (2, 3), (3, 2)),
    "products": _on(lambda x, y: x @ y.t() + torch.bmm(x[None], y.t()[None])[0], (2, 3), (4, 3)),
    "singular values": _on(torch.linalg.svdvals, (3, 3)),
    "norms": _on(lambda x: [torch.linalg.norm(x), x.norm(dim=1)], (3, 3)),
    "FFT": _on(lambda x: torch.fft.irfft(torch.fft.rfft(x)), (8,)),
    "complex": _on(lambda x: torch.view_as_real(torch.view_as_complex(x).conj() * 2j), (3, 2)),
    "bincount": lambda device: torch.bincount(torch.tensor([0, 1, 1]).to(device)),
    "searchsorted": lambda device: torch.searchsorted(
        torch.arange(4.0, device=device), torch.tensor([1.5], device=device)
    ),
    "cumulative": _on(lambda x: [x.cumsum(0), x.cummax(0)[0], x.logsumexp(0)], (5,)),
    "distances": _on(torch.cdist, (2, 3), (2, 3)),
    "quantile": _on(lambda x: torch.quantile(x, 0.5), (5,)),
    "views": _on(lambda x: [x.t()[1:], x.unfold(0, 2, 1), x.diagonal(), x.expand(2, 3, 3), x.chunk(2)[1]], (3, 3)),
    "in place in a view": _on(lambda x: (x.view(3, 2)[0].add_(1), x)[1], (6,)),
    "lists": _on(lambda x, y: torch._foreach_norm([x, y]) + torch._foreach_lerp([x], [x + 1], 0.5), (2,), (3,)),
    "resized": _resized,
    "sparse": _sparse,
    "second gradients": _second_gradient,
    "vmap": _on(lambda x: torch.func.vmap(lambda row: row.sum())(x), (2, 3)),
    "a gradient of a function": _on(torch.func.grad(lambda x: (x**2).sum()), (2,)),
    "Adam": _adam(),
    "Adam that is fused": _adam(fused=True),
    "Adam of lists": _adam(foreach=True),
    "LBFGS": _lbfgs,
    "deepcopy": _on(lambda x: copy.deepcopy(x), (2,)),
    "pickle": _on(lambda x: pickle.loads(pickle.dumps(x)), (2,)),
    "clipped": lambda device: (
        weight := nn.Parameter(values_of(3).to(device)),
        setattr(weight, "grad", values_of(3).to(device)),
        nn.utils.clip_grad_norm_([weight], 0.5),
        weight.grad,
    )[2:],
    "batches": lambda device: [
        each.to(device) for each in torch.utils.data.DataLoader(values_of(4), batch_size=2, pin_memory=True)
    ],
}


def _tensors_in(value):
    return [value] if isinstance(value, torch.Tensor) else [each for part in value for each in _tensors_in(part)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_give_the_values_of_the_cpu(operator):
    def body(rank):
        on_cuda, on_cpu = (_tensors_in(OPERATORS[operator](device)) for device in ("cuda", "cpu"))
        assert len(on_cuda) == len(on_cpu) > 0 and on_cuda[0].device == torch.device("cuda", 0)
        for own, other in zip(on_cuda, on_cpu):
            assert own.stride() == other.stride()
            torch.testing.assert_close(own.detach().cpu(), other.detach())

    on_ranks(body, ranks=1)
