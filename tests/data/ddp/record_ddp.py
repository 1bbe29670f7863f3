#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records the results of PyTorch's own DistributedDataParallel, for the tests in tests/core/parallel/recorded.

    python record_ddp.py recorded.json      (torch 2.11 with gloo; numpy only for PowerSGD; processes on loopback)

Each case trains a small model with closed-form weights and inputs (values() is that of ddp_fixture.cpp) on 1, 2, 3, 5
and 8 ranks. It writes the bits of the parameters and buffers of the first rank, and of the last rank if they differ. It
also writes the logger's data and the errors. Gloo's order of additions depends on the number of ranks and on the place
in the tensor. The sums of the first two steps are exact for numbers of ranks that are powers of two; all others agree
within rounding.

Products are computed in the way that every processor supports (otherwise MKL and ATen choose by the processor). So code
that computes and adds in the same way gets the same bits, as tests/parity does.
"""
import json
import logging
import os
import sys
import warnings

os.environ.update(MKL_CBWR="COMPATIBLE", ATEN_CPU_CAPABILITY="default")
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.parallel.distributed import _MixedPrecision

from models import Branches, Frozen, Matrix, Mixed, Mlp, Norm, NormUnused, Reused, Sparse, Tied, linear

RANKS = (1, 2, 3, 5, 8)
WORLD = max(RANKS)
STEPS = 4


def values(sizes, salt, dtype=torch.float64):
    count = 1
    for size in sizes:
        count *= size
    place = torch.arange(count) + 31 * salt
    return (((place * 7919 + salt).remainder(17) - 8).to(dtype) / 16).view(sizes)


def fill(module, salt=0):
    with torch.no_grad():
        for _, parameter in module.named_parameters(remove_duplicate=False):
            parameter.copy_(values(parameter.shape, salt, parameter.dtype))
            salt += 1


def batch_of(rank, step):
    return values((4, 6), 100 * step + rank + 1)


def descend(module, rate=0.0625):
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad, alpha=rate)


class NoStream:
    """Replaces the streams and events that mixed precision uses. The CPU has none: everything runs in order."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def record(self, *_, **__):
        pass

    wait = wait_stream = record


def bits(tensor):
    size = tensor.element_size()
    whole = tensor.detach().contiguous().flatten().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[size])
    return "".join(format(value % (1 << 8 * size), f"0{2 * size}x") for value in whole.tolist())


class Recorder:
    def __init__(self, group, ranks):
        self.group, self.ranks, self.rank, self.records = group, ranks, dist.get_rank(group), []
        self.logs, self.errors = [], []

    def note(self, case, step, module):
        if self.rank not in (0, self.ranks - 1):
            return
        state = list(module.named_parameters()) + list(module.named_buffers())
        self.records.append({"case": case, "ranks": self.ranks, "rank": self.rank, "step": step,
                             "tensors": {name: bits(tensor) for name, tensor in state}})

    def train(self, case, net, call=None, steps=STEPS, prepare=lambda ddp: None, rate=0.0625, idle=0,
              **options):
        fill(net, salt=7 * self.rank)
        ddp = DDP(net, process_group=self.group, **options)
        prepare(ddp)
        call = call or (lambda ddp, step: ddp(batch_of(self.rank, step)).double().sum().backward())
        for step in range(steps):
            ddp.zero_grad()
            call(ddp, step)
            if step >= idle:
                descend(net, rate)
            if step in (1, steps - 1):
                self.note(case, step, net)
        return ddp

    def join(self, case, net, divide, call=None, fewest=2, **options):
        fill(net, salt=7 * self.rank)
        ddp = DDP(net, process_group=self.group, **options)
        call = call or (lambda ddp, step: ddp(batch_of(self.rank, step)).sum().backward())
        with ddp.join(divide_by_initial_world_size=divide):
            for step in range(fewest + self.rank % 3):
                ddp.zero_grad()
                call(ddp, step)
                descend(net)
        self.note(case, -1, net)

    def log(self, case, ddp):
        if self.rank in (0, self.ranks - 1):
            data = ddp._get_ddp_logging_data()
            self.logs.append({"case": case, "ranks": self.ranks, "rank": self.rank,
                              "data": {key: data[key] for key in LOGGED if key in data}})

    def error(self, case, body):
        try:
            body()
            raise AssertionError(f"{case}: no error")
        except (RuntimeError, ValueError) as error:
            self.errors.append({"case": case, "ranks": self.ranks, "rank": self.rank, "text": str(error)})


def power_sgd(group, wrapper=lambda hook: hook, **options):
    state = powerSGD_hook.PowerSGDState(group, **{"start_powerSGD_iter": 2, "min_compression_rate": 1, **options})
    return lambda ddp: ddp.register_comm_hook(state, wrapper(powerSGD_hook.powerSGD_hook))


def record_errors(to):
    rank = to.rank
    ddp_of = lambda net, **options: DDP(net, process_group=to.group, **options)
    frozen = linear(6, 3).requires_grad_(False)
    to.error("no_gradient", lambda: ddp_of(frozen))

    def unused():
        ddp = ddp_of(Branches())
        for step in range(2):
            ddp(batch_of(rank, step), True).sum().backward()

    def ready_twice():
        ddp = ddp_of(Branches(), find_unused_parameters=True)
        (ddp(batch_of(rank, 0), True).sum() + ddp.module.never.weight.sum()).backward()

    def graph_changes():
        ddp = ddp_of(Branches(), static_graph=True)
        for step in range(2):
            ddp(batch_of(rank, step), step == 0).sum().backward()

    def two_hooks():
        ddp = ddp_of(Mlp())
        for _ in range(2):
            ddp.register_comm_hook(to.group, default_hooks.allreduce_hook)

    def early_end():
        ddp = ddp_of(Mlp())
        with ddp.join(throw_on_early_termination=True):
            for step in range(1 + rank):
                ddp(batch_of(rank, step)).sum().backward()

    for body in (unused, ready_twice, graph_changes, two_hooks, early_end):
        to.error(body.__name__, body)


LOGGED = ("world_size", "rank", "module_name", "bucket_cap_bytes", "find_unused_parameters", "gradient_as_bucket_view",
          "static_graph", "broadcast_buffers", "num_parameter_tensors", "total_parameter_size_bytes", "dtypes",
          "initial_bucket_sizes", "bucket_sizes", "rebuilt_bucket_sizes", "has_rebuilt_buckets", "comm_hook",
          "iteration", "num_iterations", "unused_parameter_size", "has_sync_bn", "join_uneven_inputs",
          "rebuilt_per_bucket_param_indices", "initial_per_bucket_param_indices", "num_buckets_reduced")


def record(group, ranks):
    to = Recorder(group, ranks)
    rank = to.rank
    small = 104 / (1 << 20)  # in MiB: 13 doubles

    def accumulate(ddp, step):
        with ddp.no_sync():
            for micro in range(2):
                ddp(batch_of(rank, 10 * step + micro)).sum().backward()
        ddp(batch_of(rank, 10 * step + 2)).sum().backward()

    def tokens(ddp, step):
        ddp((torch.arange(5) * (rank + 2) + step).remainder(10)).sum().backward()

    plain = lambda ddp, step: ddp(batch_of(rank, step)).sum().backward()
    branch = lambda ddp, step: ddp(batch_of(rank, step), (rank + step) % 2 == 0).sum().backward()
    left = lambda ddp, step: ddp(batch_of(rank, step), True).sum().backward()
    square = lambda ddp, step: ddp(batch_of(rank, step)).square().sum().backward()
    ignoring = Mlp()
    DDP._set_params_and_buffers_to_ignore_for_model(ignoring, ["second.weight", "third.bias"])

    to.train("plain", Mlp())
    to.log("small_buckets", to.train("small_buckets", Mlp(), bucket_cap_mb=small))
    listed = [small, 3 * small, 2 * small]
    to.log("bucket_list", to.train("bucket_list", Mlp(), bucket_cap_mb_list=listed))
    to.log("bucket_list_find_unused", to.train("bucket_list_find_unused", Mlp(), bucket_cap_mb_list=listed,
                                               bucket_cap_mb=25, find_unused_parameters=True))
    to.train("bucket_views", Mlp(), gradient_as_bucket_view=True, bucket_cap_mb=small)
    to.train("find_unused", Branches(), branch, find_unused_parameters=True, bucket_cap_mb=small)
    to.train("skip_unused", Branches(), left, find_unused_parameters=True, skip_all_reduce_unused_params=True,
             bucket_cap_mb=small)
    to.train("static_graph", Reused(), static_graph=True, bucket_cap_mb=small)
    # The first backward must reduce, or PyTorch's own assertion fails.
    to.train("static_graph_no_sync", Reused(), lambda ddp, step: (accumulate if step else plain)(ddp, step),
             static_graph=True)
    to.train("no_sync", Mlp(), accumulate)
    to.train("no_sync_find_unused", Mlp(), accumulate, find_unused_parameters=True)
    to.train("ignored", ignoring)
    to.train("buffers", Norm(), square)
    to.train("buffers_local", Norm(), square, broadcast_buffers=False)
    to.train("mixed_dtypes", Mixed())
    to.train("shared", Tied())
    to.train("sparse", Sparse(), tokens)
    to.join("join", Mlp(), True, bucket_cap_mb=small)
    to.join("join_effective_size", Mlp(), False, bucket_cap_mb=small)
    to.join("join_find_unused", Mlp(), True, find_unused_parameters=True)
    to.join("join_buffers", Norm(), True)
    to.join("join_buffers_effective_size", Norm(), False, fewest=1)
    to.join("join_buffers_unused", NormUnused(), False, find_unused_parameters=True)
    to.join("join_unused", Branches(), True, branch, find_unused_parameters=True, bucket_cap_mb=small)
    to.join("join_views", Mlp(), False, gradient_as_bucket_view=True, bucket_cap_mb=small)
    to.join("join_without_inputs", Mlp(), True, fewest=0, bucket_cap_mb=small)
    to.join("join_without_inputs_effective_size", Mlp(), False, fewest=0)
    to.train("hook_allreduce", Mlp(), prepare=lambda ddp: ddp._register_builtin_comm_hook(
        dist.BuiltinCommHookType.ALLREDUCE))
    to.train("hook_fp16", Mlp(), prepare=lambda ddp: ddp._register_builtin_comm_hook(
        dist.BuiltinCommHookType.FP16_COMPRESS))
    to.train("hook_bf16", Mlp(), prepare=lambda ddp: ddp.register_comm_hook(group, default_hooks.bf16_compress_hook))
    for name, options in (("rank1", {}), ("rank2", {"matrix_approximation_rank": 2}),
                          ("rank3_qr", {"matrix_approximation_rank": 3}),
                          ("cold", {"warm_start": False, "random_seed": 5}),
                          ("no_feedback", {"use_error_feedback": False}),
                          ("batched", {"batch_tensors_with_same_shape": True}),
                          ("epsilon", {"orthogonalization_epsilon": 0.125}),
                          ("late", {"start_powerSGD_iter": 4}),
                          ("rate2", {"min_compression_rate": 2}),
                          ("fp16", {"wrapper": default_hooks.fp16_compress_wrapper}),
                          ("bf16", {"wrapper": default_hooks.bf16_compress_wrapper})):
        to.train("power_sgd_" + name, Matrix(), square, steps=6, prepare=power_sgd(group, **options), rate=2.0**-9)
    for name, wrapper in (("fp16", default_hooks.fp16_compress_wrapper), ("bf16", default_hooks.bf16_compress_wrapper)):
        to.train("wrapper_" + name, Mlp(), prepare=lambda ddp: ddp.register_comm_hook(
            group, wrapper(default_hooks.allreduce_hook)))
    single, half, brain = torch.float32, torch.float16, torch.bfloat16
    for name, net, dtypes, options in (
            ("single", Mlp(), (single, single, single), {"bucket_cap_mb": small}),
            ("half", Mlp(), (half, half, half), {}),
            ("wide_reduction", Mlp(), (brain, torch.float64, None), {"bucket_cap_mb": small}),
            ("parameters_alone", Mlp(), (brain, None, None), {}),
            ("buffers", Norm(), (single, single, single), {}),
            ("frozen", Frozen(), (single, single, None), {})):
        # The first step is idle: the reducer's views belong to other buckets than those that it reduces, so it returns
        # whatever is in memory. With static_graph and gradient_as_bucket_view, it does so in later steps, too.
        to.train("mixed_precision_" + name, net, mixed_precision=_MixedPrecision(*dtypes), idle=1, **options)
    if ranks == 2:
        record_errors(to)
    return to.records, to.logs, to.errors


def process(rank, path):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.Stream = torch.Event = torch.accelerator.current_stream = NoStream
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    records, logs, errors = [], [], []
    for ranks in RANKS:
        group = dist.new_group(list(range(ranks)))
        if rank < ranks:
            for mine, all_of in zip(record(group, ranks), (records, logs, errors)):
                all_of.extend(mine)
        dist.barrier()
    gathered = [None] * WORLD
    dist.all_gather_object(gathered, (records, logs, errors))
    if rank == 0:
        with open(path, "w") as file:
            place = lambda item: (item["case"], item["ranks"], item["step"])
            first = {place(item): item["tensors"] for item in gathered[0][0]}
            for of in gathered[1:]:  # missing entries are as on rank 0
                of[0][:] = [item for item in of[0] if item["tensors"] != first[place(item)]]
            lines = lambda part: ",\n".join(json.dumps(item) for of in gathered for item in of[part])
            file.write(f'{{"torch": "{torch.__version__.split("+")[0]}",\n"records": [\n{lines(0)}],\n'
                       f'"logging": [\n{lines(1)}],\n"errors": [\n{lines(2)}]}}\n')
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    mp.start_processes(process, args=(sys.argv[1] if len(sys.argv) > 1 else "recorded.json",), nprocs=WORLD,
                       start_method="fork")
