# SPDX-License-Identifier: BSD-3-Clause
"""--cuda=device: "cuda" is a device of its own with the CPU's memory. Operators are in
test_cuda_operators.py; the forms that name it are in test_cuda.py and test_cuda_answers.py, which run with it, too."""

import io
import os

os.environ["REHEARSE_CUDA"] = "device"

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import RANKS, command, gathered, on_ranks, report_of, values_of
from torch import nn

import rehearse


# Mistakes that pass where "cuda" means the CPU, with the error of a GPU.
MISTAKES = {
    "a batch on the CPU": (
        lambda: nn.Linear(2, 2).cuda()(torch.ones(1, 2)),
        "found at least two devices, cuda:0 and cpu",
    ),
    "a target on the CPU": (
        lambda: F.cross_entropy(torch.ones(2, 3, device="cuda"), torch.tensor([0, 1])),
        "found at least two devices",
    ),
    "a mask on the CPU": (lambda: torch.ones(2, device="cuda").masked_fill_(torch.ones(2) > 0, 1), "two devices"),
    "a position on the CPU": (lambda: torch.ones(2, 3, device="cuda") + torch.arange(3), "two devices"),
    "into the CPU's memory": (lambda: torch.ones(2).add_(torch.ones(2, device="cuda")), "two devices"),
    "out of the CPU": (lambda: torch.add(torch.ones(2, device="cuda"), 1, out=torch.empty(2)), "cpu"),
    "another GPU": (lambda: torch.ones(2, device="cuda:0") + torch.ones(2, device="cuda:1"), "cuda:0 and cuda:1"),
    "numpy": (lambda: torch.ones(2, device="cuda").numpy(), "can't convert cuda:0 device type tensor to numpy"),
    "a generator of the CPU": (
        lambda: torch.randn(2, device="cuda", generator=torch.Generator()),
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    "binary cross entropy in autocast": (
        lambda: _within_autocast(lambda: F.binary_cross_entropy(*[torch.ones(2, device="cuda")] * 2)),
        "unsafe to autocast",
    ),
    "sparse by rows": (lambda: torch.eye(2, device="cuda").to_sparse_csr() * 2, "sparse by rows.*run with --cuda"),
}


def _within_autocast(function):
    with torch.autocast("cuda"):
        return function()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_those_of_a_gpu(mistake):
    function, error = MISTAKES[mistake]

    def body(rank):
        with pytest.raises((RuntimeError, TypeError, NotImplementedError), match=error):
            function()

    on_ranks(body, ranks=2)


def test_ranks_have_devices_of_their_own():
    def body(rank):
        torch.cuda.set_device(rank)
        rehearse.compute(0.1)  # others set theirs
        own = torch.ones(2, device="cuda")
        assert str(own.device) == f"cuda:{rank}" and own.is_cuda and repr(own).endswith(f"device='cuda:{rank}')")
        assert torch.ones(1, device=torch.device("cuda", 1)).get_device() == 1
        assert own.cuda() is own and torch.ones(1).cuda().device.index == rank
        host = torch.ones(2)
        copied = host.to("cuda")
        host.add_(1)
        assert copied.tolist() == [1, 1] and copied.to("cpu").device.type == "cpu"
        (own * 2).requires_grad_().sum().backward()

    on_ranks(body)


def test_what_a_gpu_draws_is_its_own():
    def body(rank):
        torch.manual_seed(1)
        of_cpu = torch.rand(4)
        torch.manual_seed(1)
        masks = [torch.dropout(torch.ones(64, device="cuda"), 0.5, True) for _ in range(2)]
        assert not torch.equal(*masks) and torch.equal(torch.rand(4), of_cpu)
        torch.manual_seed(1)
        assert torch.equal(torch.dropout(torch.ones(64, device="cuda"), 0.5, True), masks[0])
        state = torch.cuda.get_rng_state()
        first = torch.randn(3, device="cuda")
        torch.cuda.set_rng_state(state)
        assert state.numel() == 16 and torch.equal(torch.randn(3, device="cuda"), first)
        torch.cuda.manual_seed(7 + rank)
        assert len({str(each) for each in gathered(torch.rand(2, device="cuda").tolist())}) == RANKS
        generators = [torch.Generator("cuda").manual_seed(5) for _ in range(2)]
        assert all(each.device.type == "cuda" for each in generators)
        draws = [torch.randperm(9, device="cuda", generator=each) for each in generators]
        again = torch.randperm(9, device="cuda", generator=generators[0])
        assert torch.equal(*draws) and not torch.equal(again, draws[0])

    assert "manual_seed" not in on_ranks(body).text


def _collectives(device):
    """What each collective gives on this rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = (values_of(size) + rank).to(device)
    reduced, maximum = own.clone(), own.clone()
    dist.all_reduce(reduced)
    work = dist.all_reduce(maximum, dist.ReduceOp.MAX, async_op=True)
    work.wait()
    parts, whole = [torch.empty_like(own) for _ in range(size)], torch.empty(size * size, device=device)
    dist.all_gather(parts, own)
    dist.all_gather_into_tensor(whole, own)
    piece = torch.empty(1, device=device)
    dist.reduce_scatter_tensor(piece, own)
    exchanged = torch.empty_like(own)
    dist.all_to_all_single(exchanged, own)
    sent = own.clone()
    dist.broadcast(sent, 1)
    received = torch.empty_like(own)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, own, (rank + 1) % size), dist.P2POp(dist.irecv, received, (rank - 1) % size)]
    )
    for each in works:
        each.wait()
    future = dist.all_reduce(own.clone(), async_op=True).get_future()
    future.wait()
    return [reduced, maximum, *parts, whole, piece, exchanged, sent, received, future.value()[0]]


def test_collectives_give_the_values_of_the_cpu():
    def body(rank):
        torch.cuda.set_device(rank)
        for own, other in zip(_collectives("cuda"), _collectives("cpu")):
            assert own.device == torch.device("cuda", rank)
            torch.testing.assert_close(own.cpu(), other)

    on_ranks(body)


def _trained_model(wrap, device, ranks_own):
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    model = wrap(model.to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model((values_of(4, 3) + step + ranks_own).to(device)).square().mean().backward()
        optimizer.step()
    return [each.full_tensor() if hasattr(each, "full_tensor") else each for each in model.parameters()]


@pytest.mark.parametrize("way", ["DDP", "FSDP2", "FSDP"])
def test_models_of_all_ranks_give_the_values_of_the_cpu(way):
    fsdp = torch.distributed.fsdp

    def wrapped(device, rank):
        if way == "DDP":
            return lambda model: nn.parallel.DistributedDataParallel(
                model, device_ids=[rank] if device == "cuda" else None, bucket_cap_mb=0.00001
            )
        if way == "FSDP2":
            return lambda model: fsdp.fully_shard(model, mesh=dist.init_device_mesh(device, (RANKS,))) or model
        return lambda model: fsdp.FullyShardedDataParallel(
            model, device_id=rank if device == "cuda" else torch.device("cpu")
        )

    def body(rank):
        torch.cuda.set_device(rank)
        on_cuda, on_cpu = (_trained_model(wrapped(device, rank), device, rank) for device in ("cuda", "cpu"))
        for own, other in zip(on_cuda, on_cpu):
            assert own.device == torch.device("cuda", rank)
            torch.testing.assert_close(own.detach().cpu(), other.detach())

    on_ranks(body)


def test_a_saved_file_names_the_device():
    def body(rank):
        file = io.BytesIO()
        torch.save({"w": torch.ones(2, device="cuda:1")}, file)
        places = {}
        note = lambda storage, where: places.setdefault(where, storage)
        for location in (None, "cpu", "cuda:0", {"cuda:1": "cuda:0"}, note):
            file.seek(0)
            loaded = torch.load(file, map_location=location)["w"]
            assert loaded.tolist() == [1, 1]
        assert list(places) == ["cuda:1"]

    on_ranks(body, ranks=2)


def test_the_default_checks_see_tensors_of_the_device():
    def body(rank):
        buffer = torch.ones(8, device="cuda") * rank
        work = dist.all_reduce(buffer, async_op=True)
        buffer.add_(1)
        work.wait()

    report = report_of(body)
    assert report.verdict != "OK" and "test_cuda_device.py" in report.text, report.text


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_nccl_wants_a_gpu_for_each_rank(backend):
    def body(rank):
        dist.init_process_group(backend)
        value = torch.ones(1, device="cuda")
        dist.all_reduce(value)
        assert value.item() == 2

    report = report_of(body, init=False)
    if backend == "gloo":
        assert report.verdict == "OK", report.text
    else:
        assert report.verdict == "RANK FAILED" and "Duplicate GPU detected" in report.text, report.text


SCRIPT = """
import os
import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
batch, target = torch.ones(3, 2).cuda(), torch.ones(3, 2)
if "BUG" not in os.environ or dist.get_rank() != 1:
    target = target.cuda()
loss = (model(batch) - target).square().mean()
loss.backward()
if "HOST" in os.environ:
    dist.all_reduce(torch.ones(1))
print("ended on", next(model.parameters()).device, flush=True)
dist.destroy_process_group()
"""


def test_a_script_that_forgets_to_move_a_tensor(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    words = ("run", "train.py", "--ranks=2", "--cuda=device")
    run = command(tmp_path, *words)
    assert run.returncode == 0, run.stdout + run.stderr
    assert {"ended on cuda:0", "ended on cuda:1"} <= set(run.stdout.splitlines())
    assert 'gave the CPU\'s memory to "cuda" (--cuda=device)' in " ".join(run.stdout.split())
    failed = command(tmp_path, *words, BUG="1")
    assert "RANK FAILED: rank 1" in failed.stdout and "train.py:12" in failed.stdout, failed.stdout
    assert "Expected all tensors to be on the same device" in failed.stdout
    host = command(tmp_path, *words, HOST="1")
    assert "No backend type associated with device type cpu" in " ".join(host.stdout.split()), host.stdout


def test_another_value_is_refused(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    run = command(tmp_path, "run", "train.py", "--cuda=gpu")
    assert run.returncode != 0 and "--cuda=gpu: there are --cuda and --cuda=device" in run.stderr
