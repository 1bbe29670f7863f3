# SPDX-License-Identifier: BSD-3-Clause
"""Scripts that are written for GPUs, with --cuda: how they name a device, and what torch.cuda answers. With
REHEARSE_CUDA=device, the tests are about --cuda=device."""

import io
import os

os.environ.setdefault("REHEARSE_CUDA", "1")
IS_DEVICE = os.environ["REHEARSE_CUDA"] == "device"

import pytest
import torch
import torch.distributed as dist
from ranks import RANKS, command, gathered, on_ranks, report_of
from torch import nn

import rehearse

CPU = torch.device("cpu")
about_the_cpu = pytest.mark.skipif(IS_DEVICE, reason='where "cuda" means the CPU')


def _loaded(location):
    file = io.BytesIO()
    torch.save({"w": torch.arange(3.0)}, file)
    file.seek(0)
    return torch.load(file, map_location=location)["w"]


def _module(**options):
    return nn.Linear(2, 2, **options)


# Each names a GPU, and gives a tensor, or a list of them.
FORMS = {
    "zeros of a text": lambda: torch.zeros(2, device="cuda"),
    "zeros of a text with a number": lambda: torch.zeros(2, device="cuda:1"),
    "zeros of a device": lambda: torch.zeros(2, device=torch.device("cuda")),
    "zeros of a device with a number": lambda: torch.zeros(2, device=torch.device("cuda", 1)),
    "zeros of a device by names": lambda: torch.zeros(2, device=torch.device(type="cuda", index=0)),
    "zeros of a number": lambda: torch.zeros(2, device=1),
    "zeros like": lambda: torch.zeros_like(torch.ones(2), device="cuda"),
    "new zeros": lambda: torch.ones(2).new_zeros(2, device="cuda"),
    "new tensor": lambda: torch.ones(2).new_tensor([1.0, 2.0], device="cuda"),
    "tensor": lambda: torch.tensor([1.0, 2.0], device="cuda"),
    "as_tensor": lambda: torch.as_tensor([1.0, 2.0], device="cuda"),
    "arange": lambda: torch.arange(2, device="cuda"),
    "randn": lambda: torch.randn(2, device="cuda"),
    "randperm": lambda: torch.randperm(4, device="cuda"),
    "empty strided": lambda: torch.empty_strided((2,), (1,), device="cuda").fill_(0),
    "eye": lambda: torch.eye(2, device="cuda"),
    "to a text": lambda: torch.ones(2).to("cuda"),
    "to a device": lambda: torch.ones(2).to(torch.device("cuda:0")),
    "to a number": lambda: torch.ones(2).to(1),
    "to by name": lambda: torch.ones(2).to(device="cuda", non_blocking=True),
    "to with a type": lambda: torch.ones(2).to("cuda", torch.float16),
    "to another's device": lambda: torch.ones(2).to(torch.zeros(1, device="cuda")),
    "to the device of another": lambda: torch.ones(2).to(torch.zeros(1, device="cuda").device),
    "cuda()": lambda: torch.ones(2).cuda(),
    "cuda(1)": lambda: torch.ones(2).cuda(1),
    "cuda() by name": lambda: torch.ones(2).cuda(device="cuda", non_blocking=True),
    "parameter": lambda: nn.Parameter(torch.ones(2)).cuda().detach(),
    "module to": lambda: [each.detach() for each in _module().to("cuda").parameters()],
    "module cuda": lambda: [each.detach() for each in _module().cuda().parameters()],
    "module cuda of a number": lambda: [each.detach() for each in _module().cuda(1).parameters()],
    "module of a device": lambda: [each.detach() for each in _module(device="cuda").parameters()],
    "module from meta": lambda: [
        each.detach().zero_() for each in _module(device="meta").to_empty(device="cuda").parameters()
    ],
    "generator": lambda: torch.randn(2, generator=torch.Generator("cuda").manual_seed(1), device="cuda"),
    "generator by name": lambda: torch.randn(2, generator=torch.Generator(device="cuda"), device="cuda"),
    "load to a text": lambda: _loaded("cuda:0"),
    "load to a device": lambda: _loaded(torch.device("cuda")),
    "load by a dictionary": lambda: _loaded({"cpu": "cuda:1"}),
    "load by a function": lambda: _loaded(lambda storage, location: storage.cuda()),
    "pinned": lambda: torch.ones(2).pin_memory().to("cuda", non_blocking=True),
    "copied into": lambda: torch.empty(2, device="cuda").copy_(torch.ones(2)),
    "scalar to": lambda: torch.tensor(1.0).cuda() * 2,
    "the type of CUDA": lambda: torch.cuda.FloatTensor([1.0, 2.0]),
    "script": lambda: torch.jit.script(_to_cuda)(torch.ones(2)),
}


def _to_cuda(x: torch.Tensor) -> torch.Tensor:
    return x.to("cuda")


def _default_device():
    with torch.device("cuda"):
        inner = torch.zeros(2)
    torch.set_default_device("cuda")
    outer = torch.zeros(2)
    torch.set_default_device(None)
    return [inner, outer]


FORMS["default device"] = _default_device


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_name_a_gpu(form):
    def body(rank):
        given = FORMS[form]()
        for tensor in given if isinstance(given, list) else [given]:
            assert tensor.is_cuda and tensor.numel() > 0
            assert tensor.device.type == "cuda" if IS_DEVICE else tensor.device == CPU == torch.device("cuda")

    on_ranks(body, ranks=2)


# Written by torch.save() on a GPU: a tensor, a model's state, that of its optimizer, and CUDA's generator.
FILE = os.path.join(os.path.dirname(__file__), "..", "data", "saved_on_cuda0.pt")


@pytest.mark.parametrize("location", [None, "cpu", "cuda", "cuda:1", CPU, {"cuda:0": "cuda:1"}, lambda data, at: data])
def test_a_file_that_was_saved_on_a_gpu(location):
    def body(rank):
        saved = torch.load(FILE, map_location=location)
        assert saved["w"].tolist() == [0, 1, 2] and (IS_DEVICE or saved["w"].device == CPU)
        if IS_DEVICE and saved["w"].is_cuda:
            torch.cuda.set_device(saved["w"].device)
        model = nn.Linear(2, 2).cuda()
        model.load_state_dict(saved["model"])
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.load_state_dict(saved["optimizer"])
        torch.cuda.set_rng_state(saved["rng"])
        model(torch.ones(1, 2, device="cuda")).sum().backward()
        optimizer.step()

    on_ranks(body, ranks=2)


def test_the_answers_of_torch_cuda():
    def body(rank):
        cuda = torch.cuda
        assert cuda.is_available() and cuda.device_count() == RANKS
        assert torch.accelerator.is_available() and torch.accelerator.device_count() == RANKS
        cuda.set_device(rank)
        dist.barrier()  # others set theirs
        assert cuda.current_device() == rank
        with cuda.device(0):
            assert cuda.current_device() == 0
        assert cuda.current_device() == rank
        cuda.set_device(f"cuda:{RANKS - 1}")
        assert cuda.current_device() == RANKS - 1
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            cuda.set_device(RANKS)
        assert cuda.get_device_capability() == (8, 0) and cuda.get_device_properties(0).total_memory > 0
        assert cuda.memory_allocated() == cuda.max_memory_allocated(0) == 0
        assert cuda.memory_stats()["allocated_bytes.all.peak"] == 0 and len(cuda.mem_get_info()) == 2
        cuda.empty_cache(), cuda.synchronize(), cuda.reset_peak_memory_stats()
        assert cuda.is_bf16_supported() and cuda.is_initialized() == IS_DEVICE
        cuda.set_rng_state_all(cuda.get_rng_state_all())
        with torch.random.fork_rng(devices=[0]):
            torch.manual_seed(3)

    on_ranks(body)


def test_streams_and_events_have_virtual_time():
    def body(rank):
        stream = torch.cuda.Stream()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        with torch.cuda.stream(stream):
            assert torch.cuda.current_stream() is stream and not stream.is_capturing()
            rehearse.compute(0.25)
        torch.cuda.current_stream().wait_stream(stream)
        assert torch.cuda.current_stream() is not stream
        end.record()
        torch.cuda.synchronize()
        assert begin.elapsed_time(end) == pytest.approx(250, abs=1)
        with pytest.raises(RuntimeError, match="no CUDA graphs"):
            torch.cuda.CUDAGraph()

    on_ranks(body, ranks=2)


@about_the_cpu
@pytest.mark.parametrize(
    "copy",
    [
        lambda value: value.cpu(),
        lambda value: value.to("cpu"),
        lambda value: value.to(torch.device("cpu"), non_blocking=True),
        lambda value: value.to(device="cpu"),
        lambda value: value.to("cpu", torch.float32),
        lambda value: value.to(torch.empty(0)),
        lambda value: value.to("cuda"),
        lambda value: value.to(torch.device("cuda", 0)),
        lambda value: value.to(1),
    ],
)
def test_a_copy_to_another_device_does_not_follow_the_first(copy):
    def body(rank):
        weight = torch.ones(2)
        kept = copy(weight)
        weight.add_(1)
        assert kept.tolist() == [1, 1] and weight.tolist() == [2, 2]

    on_ranks(body, ranks=2)


@about_the_cpu
def test_what_names_no_other_device_is_the_tensor_itself():
    def body(rank):
        value = torch.ones(2, device="cuda")
        assert value.to(torch.float32) is value and value.to(dtype=torch.float32) is value
        weight = torch.zeros(2, device="cuda", requires_grad=True)
        assert weight.to("cuda") is weight and not weight.to("cpu").is_leaf
        module = torch.nn.Linear(2, 2)
        parameters = list(module.parameters())
        assert all(own is other for own, other in zip(module.to("cuda").parameters(), parameters))

    on_ranks(body, ranks=2)


@about_the_cpu
def test_snapshots_of_weights_do_not_follow_them():
    def body(rank):
        model = torch.nn.Linear(2, 2).to("cuda")
        before = {name: value.to("cpu") for name, value in model.state_dict().items()}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(1, 2, device="cuda")).sum().backward()
        optimizer.step()
        assert all((before[name] != value).any() for name, value in model.state_dict().items())

    on_ranks(body, ranks=2)


def test_autocast_and_scaler():
    def body(rank):
        model, scaler = nn.Linear(4, 4).cuda(), torch.amp.GradScaler("cuda", init_scale=8.0)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with torch.autocast("cuda"):
            assert model(torch.ones(2, 4, device="cuda")).dtype == torch.float16
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            loss = model(torch.ones(2, 4, device="cuda"))
            assert loss.dtype == torch.bfloat16
        before = model.weight.detach().clone()
        scaler.scale(loss.float().square().mean()).backward()
        gradient = model.weight.grad.clone()
        scaler.unscale_(optimizer)
        assert torch.equal(model.weight.grad * 8, gradient)
        scaler.step(optimizer)
        scaler.update()
        assert not torch.equal(model.weight.detach(), before)
        model.weight.grad.fill_(float("inf"))
        scaler.scale(torch.ones(1))
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 4.0

    on_ranks(body, ranks=2)


def test_ddp_of_a_gpu_and_its_group():
    def body(rank):
        torch.cuda.set_device(rank)
        torch.manual_seed(rank)
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2).to(rank), device_ids=[rank], output_device=rank)
        model(torch.ones(4, 3, device=f"cuda:{rank}") * rank).sum().backward()
        same = gathered(model.module.weight.grad.tolist())
        assert same == [same[0]] * RANKS
        dist.barrier(device_ids=[rank])
        units = torch.distributed.fsdp.FullyShardedDataParallel(
            nn.Linear(3, 2), device_id=torch.cuda.current_device(), sync_module_states=True
        )
        units(torch.ones(1, 3, device="cuda")).sum().backward()
        assert gathered(units(torch.ones(1, 3)).tolist())[0] == units(torch.ones(1, 3)).tolist()
        with pytest.raises(ValueError, match="device_ids"):
            nn.parallel.DistributedDataParallel(nn.Linear(1, 1), device_ids=[0, 1])

    on_ranks(body)


def test_sync_batch_norm_is_that_of_the_whole_batch():
    def of(norm, x):
        x = x.clone().requires_grad_()
        y = norm(x)
        y.pow(3).sum().backward()
        return y.detach(), x.grad

    def body(rank):
        torch.manual_seed(5)
        whole = torch.randn(RANKS * 3, 4, 5, dtype=torch.float64)
        alone = nn.BatchNorm1d(4).double()
        y, gradient = of(alone, whole)
        norm = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(4).double()).cuda()
        own_y, own_gradient = of(norm, whole[rank * 3 : rank * 3 + 3].cuda())
        part = slice(rank * 3, rank * 3 + 3)
        torch.testing.assert_close(own_y.cpu(), y[part])
        torch.testing.assert_close(own_gradient.cpu(), gradient[part])
        torch.testing.assert_close(norm.running_var.cpu(), alone.running_var)
        torch.testing.assert_close(norm.running_mean.cpu(), alone.running_mean)

    on_ranks(body)


@about_the_cpu
def test_a_seed_of_the_gpu_alone_is_a_remark():
    def seeds(rank):
        torch.manual_seed(1)
        torch.cuda.manual_seed_all(1)

    def masks(rank):
        torch.manual_seed(1)
        torch.cuda.manual_seed(1000 + rank)

    assert "manual_seed" not in on_ranks(seeds).text
    text = " ".join(on_ranks(masks).text.split())
    assert text.count("ranks 0-3: gave torch.cuda.manual_seed() another seed") == 1


@about_the_cpu
def test_a_state_of_the_gpu_that_is_set_is_a_remark():
    def body(rank):
        torch.cuda.set_rng_state(torch.cuda.get_rng_state())

    assert "set the state of CUDA's generator" in on_ranks(body, ranks=2).text


@pytest.mark.parametrize("wait", [torch.cuda, torch.accelerator])
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_a_wait_for_the_gpu_waits_for_what_nccl_carries(backend, wait):
    def body(rank):
        torch.cuda.set_device(rank)
        dist.init_process_group(backend)
        value = torch.ones(2, device="cuda")
        dist.all_reduce(value, async_op=True)
        wait.synchronize()
        assert backend == "gloo" or value.tolist() == [2, 2]

    report = report_of(body, init=False)
    assert report.verdict == "OK" and ("nobody waited for allreduce" in report.text) == (backend == "gloo"), report.text


def test_many_gpus():
    def body(rank):
        torch.cuda.set_device(rank)
        assert torch.cuda.current_device() == rank and torch.cuda.device_count() == 200

    report = report_of(body, ranks=200)
    told = " ".join(report.text.split())
    assert ("at most 127 devices" in told) if IS_DEVICE else report.verdict == "OK", report.text


SCRIPT = """
import os
import torch
import torch.distributed as dist

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", device_id=torch.device("cuda", local))
device = torch.device("cuda", local)
x = torch.ones(2, device=device) * dist.get_rank()
dist.all_reduce(x)
assert x.sum().item() == 12
if dist.get_rank() == 1 and "BUG" in os.environ:
    dist.all_reduce(x)
dist.barrier()
print("ended", dist.get_rank(), dist.get_backend(), flush=True)
dist.destroy_process_group()
"""


def test_a_script_for_gpus_runs_and_is_replayed(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    run = command(tmp_path, "run", "train.py", "--ranks=4", "--cuda")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("ended") == 4 and "nccl" in run.stdout
    assert 'took the CPU for "cuda" (--cuda)' in " ".join(run.stdout.split())
    failed = command(tmp_path, "run", "train.py", "--ranks=4", "--cuda", BUG="1")
    assert "MISMATCH: rank 1" in failed.stdout and "culprit: rank 1 at train.py:14" in failed.stdout, failed.stdout
    replay = failed.stdout.partition("replay: python -m rehearse ")[2].splitlines()[0].split()
    assert "--cuda" in replay
    assert "MISMATCH: rank 1" in command(tmp_path, *replay, BUG="1").stdout


def test_without_the_option_the_error_names_it(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    run = command(tmp_path, "run", "train.py", "--ranks=2")
    assert run.returncode != 0 and "--cuda" in run.stdout, run.stdout
