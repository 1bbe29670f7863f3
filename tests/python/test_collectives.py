# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed in ranks: values as in processes."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ranks import RANKS, gathered, on_ranks, report_of
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def test_collectives_and_objects():
    def body(rank):
        total = torch.full((4,), float(rank))
        dist.all_reduce(total)
        assert total.tolist() == [6.0] * 4
        dist.all_reduce(total, async_op=True).wait()
        assert total.tolist() == [24.0] * 4
        assert gathered({"rank": rank}) == [{"rank": each} for each in range(RANKS)]
        things = [("from", 0)] if rank == 0 else [None]
        dist.broadcast_object_list(things)
        assert things == [("from", 0)]
        pair = dist.new_group([0, 1])
        if rank < 2:
            mine = torch.ones(1)
            dist.all_reduce(mine, group=pair)
            assert mine.item() == 2
        dist.monitored_barrier()

    on_ranks(body)


def test_messages():
    def body(rank):
        value = torch.tensor([float(rank)])
        if rank == 0:
            dist.send(value, 1)
        if rank == 1:
            dist.recv(value, 0)
            assert value.item() == 0
        others = torch.zeros(1)
        calls = [
            dist.P2POp(dist.isend, torch.ones(1) * rank, (rank + 1) % RANKS),
            dist.P2POp(dist.irecv, others, (rank - 1) % RANKS),
        ]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        assert others.item() == (rank - 1) % RANKS

    on_ranks(body)


def test_functional_collectives():
    def body(rank):
        total = functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
        assert total[0] == RANKS
        every = functional.all_gather_tensor(torch.ones(2) * rank, 0, dist.group.WORLD)
        assert every.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]

    on_ranks(body)


def test_futures_run_their_callbacks_in_their_rank():
    def body(rank):
        called = []
        for _ in range(20):
            work = dist.all_reduce(torch.ones(1), async_op=True)
            work.get_future().add_done_callback(lambda _: called.append(dist.get_rank()))
            work.wait()
        dist.barrier()
        assert called == [rank] * 20
        future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
        assert future.then(lambda done: done.value()[0] + 1).wait().item() == RANKS + 1

    on_ranks(body)


def test_communication_hook():
    def hook(_, bucket):
        mean = dist.all_reduce(bucket.buffer() / RANKS, async_op=True).get_future()
        return mean.then(lambda done: done.value()[0])

    def body(rank):
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        model.register_comm_hook(None, hook)
        model(torch.ones(2, 4) * rank).sum().backward()
        assert abs(model.module.weight.grad[0, 0].item() - 3.0) < 1e-6

    on_ranks(body)


def test_hooks_and_functions_that_communicate():
    class Meet(torch.autograd.Function):
        @staticmethod
        def forward(context, value):
            dist.barrier()
            return value * 2

        @staticmethod
        def backward(context, gradient):
            dist.barrier()
            return gradient * 2

    def body(rank):
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        shapes = []
        model.module.weight.register_hook(lambda gradient: shapes.append(gradient.shape))
        for _ in range(3):
            Meet.apply(model(torch.ones(2, 4))).sum().backward()
        assert shapes == [(4, 4)] * 3

    on_ranks(body)


def test_sharded_optimizer_and_uneven_inputs():
    def body(rank):
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(8, 8))
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
        with Join([model]):
            for _ in range(2 + rank):
                model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        first = gathered(model.module.weight.tolist())
        assert first == [first[0]] * RANKS

    on_ranks(body)


def test_store_of_the_world():
    def body(rank):
        store = dist.distributed_c10d._get_default_store()
        if rank == 0:
            store.set("key", "value")
        assert store.get("key") == b"value"

    on_ranks(body)


def test_a_hook_that_waits_in_its_callbacks():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    def body(rank):
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)))
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        for _ in range(4):
            model(torch.ones(2, 64) * (rank + 1)).sum().backward()
        gradients = [value.grad.tolist() for value in model.parameters()]
        assert gathered(gradients) == [gradients] * RANKS

    on_ranks(body)


@pytest.mark.parametrize("backend", [None, "gloo", "nccl", "cpu:gloo", "cpu:gloo,cuda:nccl"])
@pytest.mark.parametrize("level", [dist.DebugLevel.OFF, dist.DebugLevel.DETAIL])
def test_groups_of_any_back_end(backend, level):
    def body(rank):
        dist.set_debug_level(level)
        dist.init_process_group(backend)
        value = torch.ones(2)
        dist.all_reduce(value)
        dist.barrier()
        half = dist.new_group([0, 1], backend=backend)
        dist.all_reduce(value, group=half)
        assert value.tolist() == [4, 4]
        dist.destroy_process_group()

    on_ranks(body, ranks=2, init=False)


@pytest.mark.parametrize("odd", range(4))
def test_one_rank_that_makes_groups_in_another_order_is_to_blame(odd):
    def body(rank):
        lists = [[0, 2], [1, 3]]
        for ranks in reversed(lists) if rank == odd else lists:
            dist.new_group(ranks)

    for seed in range(1, 4):
        report = report_of(body, ranks=4, seed=seed)
        told = " ".join(report.text.split())
        assert f"RANK FAILED: rank {odd}: " in told and "in one order" in told, report.text


def test_one_rank_that_leaves_a_group_out_is_to_blame():
    def body(rank):
        for ranks in [[0, 1], [2, 3], [0, 2], [1, 3]][rank == 2 :]:
            dist.new_group(ranks)
        dist.barrier()

    report = report_of(body, ranks=4)
    assert "RANK FAILED: rank 2: " in report.text, report.text
