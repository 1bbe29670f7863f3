# SPDX-License-Identifier: BSD-3-Clause
"""What Python ranks cost, in CPU time. Usage: tests/python/run.py FOLDER-OF-THE-PACKAGE tests/bench/python_ranks.py

Each figure is the best of three, taken by turns with what it is compared with.
"""

import ctypes
import os
import random
import resource
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.testing._internal.distributed.multi_threaded_pg import _install_threaded_pg

import rehearse

CALLS = 8000


def cpu():
    """CPU seconds of this process; ranks' clocks are virtual."""
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def resident_kb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1024


def on_ranks(body, ranks, **options):
    """What body(rank) returns on rank 0."""
    reader, writer = os.pipe()

    def run(rank):
        value = body(rank)
        if rank == 0:
            os.write(writer, repr(value).encode())

    rehearse.run(run, ranks=ranks, **options)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return float(answer.read())


def per_call(call, calls=CALLS):
    """Microseconds of CPU a rank and call, of all ranks together."""

    def body(rank):
        ranks, value = dist.get_world_size(), torch.ones(1)
        for _ in range(50):
            call(value)
        dist.barrier()
        before = cpu()
        for _ in range(calls // ranks):
            call(value)
        dist.barrier()
        return (cpu() - before) / (calls // ranks) / ranks * 1e6

    return body


def all_reduce(value):
    dist.all_reduce(value)


def all_reduce_of_fake():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    value = torch.ones(1)
    for _ in range(100):
        all_reduce(value)
    before = cpu()
    for _ in range(CALLS):
        all_reduce(value)
    taken = (cpu() - before) / CALLS * 1e6
    dist.destroy_process_group()
    return taken


give_way = getattr(ctypes.PyDLL(None), "_ZN8rehearse4exec9this_rank5yieldEv")


def switches(prepare, ranks, calls=400_000):
    """Nanoseconds a yield."""

    def body(rank):
        prepare()
        dist.barrier()
        before = cpu()
        for _ in range(calls // ranks):
            give_way()
        dist.barrier()
        return (cpu() - before) / calls * 1e9

    return on_ranks(body, ranks)


def alike():
    random.seed(1)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(1)


def with_own_variables():
    dist.new_group([0])


def best(measure, times=3):
    return min(measure() for _ in range(times))


def fork_of_parent():
    """Milliseconds of a bare fork and exit."""
    before = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return (time.monotonic() - before) * 1e3


def smallest_run():
    before = time.monotonic()
    rehearse.run(lambda: None, ranks=2)
    return (time.monotonic() - before) * 1e3


def memory(ranks):
    def body(rank):
        dist.barrier()
        if rank:
            dist.barrier()
            return 0
        now = resident_kb()
        dist.barrier()
        return now

    return (on_ranks(body, ranks) - on_ranks(body, 2)) / ranks


def barrier(ranks):
    def body(rank):
        dist.barrier()
        return cpu()

    return on_ranks(body, ranks)


def train_mlp():
    torch.manual_seed(dist.get_rank())
    layers = [each for _ in range(3) for each in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(64, 256)).square().mean().backward()
        optimizer.step()


def mlp(ranks):
    def body(rank):
        before = cpu()
        train_mlp()
        dist.barrier()
        return cpu() - before

    return on_ranks(body, ranks)


def mlp_on_threads(ranks):
    """CPU seconds of the same with torch's own process group of threads."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _install_threaded_pg()
        torch._C._distributed_c10d._set_thread_isolation_mode(True)
        store = dist.HashStore()

        def body(rank):
            dist.init_process_group("threaded", rank=rank, world_size=ranks, store=store)
            train_mlp()
            dist.barrier()

        threads = [threading.Thread(target=body, args=(rank,)) for rank in range(ranks)]
        before = cpu()
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        os.write(writer, repr(cpu() - before).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return float(answer.read())


def test_costs(capsys):
    lines = []
    fake = best(all_reduce_of_fake)
    for ranks in (8, 64):
        ours = best(lambda: on_ranks(per_call(all_reduce), ranks))
        lines.append(f"all_reduce of 4 B, {ranks} ranks: {ours:.2f} us, {ours - fake:.2f} us above fake ({fake:.2f})")
    ours = best(lambda: on_ranks(per_call(all_reduce), 8, call_sites=True))
    lines.append(f"all_reduce with call sites, 8 ranks: {ours:.2f} us, {ours - fake:.2f} us above fake")
    for name, prepare in (("generators alike", alike), ("each its own", lambda: None), ("a group", with_own_variables)):
        alone = best(lambda: switches(prepare, 1))
        for ranks in (8, 64):
            lines.append(f"switch, {name}, {ranks} ranks: {best(lambda: switches(prepare, ranks)) - alone:.0f} ns")
    for ranks in (64, 512):
        lines.append(f"memory in a barrier, {ranks} ranks: {memory(ranks):.0f} KB a rank")
    lines.append(f"1,000 ranks through a barrier: {best(lambda: barrier(1000)):.2f} s of CPU")
    ours, threads = best(lambda: mlp(64)), best(lambda: mlp_on_threads(64))
    lines.append(f"an MLP under DDP, 64 ranks: {ours:.2f} s of CPU, on threads {threads:.2f} s ({ours / threads:.2f})")
    lines.append(f"bare fork and exit {best(fork_of_parent, 9):.1f} ms, smallest run {best(smallest_run, 9):.1f} ms")
    with capsys.disabled():
        print("\n" + "\n".join(lines))
