# SPDX-License-Identifier: BSD-3-Clause
"""The state checkers and the other functions that scripts call."""

import copy
import json
import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from ranks import on_ranks, report_of
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

import rehearse


def _net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)).double()


def _part(rank, step=0):
    return torch.arange(12, dtype=torch.float64).view(2, 6).add(7 * rank + step).sin()


def _loss(net, batch):
    return net(batch).pow(2).mean()


def _train(wrap, rate=lambda rank: 0.1, check=rehearse.check_step):
    """Two steps of a wrapped model beside those of one process."""

    def body(rank, size):
        one, net = _net(), wrap(_net())
        step = torch.optim.AdamW(net.parameters(), rate(rank))
        step_of_one = torch.optim.AdamW(one.parameters(), 0.1)
        for number in range(2):
            step.zero_grad()
            _loss(net, _part(rank, number)).backward()
            step.step()

            def reference():
                step_of_one.zero_grad()
                _loss(one, torch.cat([_part(each, number) for each in range(size)])).backward()
                step_of_one.step()

            check(net, one, reference)

    return report_of(body, ranks=4)


def _hybrid(net):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


@pytest.mark.parametrize("wrap", [DDP, fully_shard, _hybrid])
def test_step_is_that_of_one_process(wrap):
    report = _train(wrap)
    assert report.verdict == "OK", report.text
    assert "steps (held 2 times)" in report.text


def test_another_rate_on_a_rank_is_named():
    report = _train(fully_shard, rate=lambda rank: 0.2 if rank == 2 else 0.1)
    assert report.verdict == "CHECK FAILED"
    assert "right in the rows of ranks 0-1,3, but those of rank 2 are" in report.headline


def test_gradients_without_a_mean():
    def body(rank, size):
        net = _net()
        _loss(net, _part(rank)).backward()
        for parameter in net.parameters():
            dist.all_reduce(parameter.grad)
        rehearse.check_gradients(net, lambda: _loss(net, torch.cat([_part(each) for each in range(size)])))

    report = report_of(body, ranks=4)
    assert report.verdict == "CHECK FAILED" and "4 times as large" in report.headline, report.text


def test_gradients_of_a_sharded_model_are_refused():
    def body(rank):
        net = fully_shard(_net())
        with pytest.raises(ValueError, match="check_step"):
            rehearse.check_gradients(net, lambda: None)

    on_ranks(body)


def test_replicas():
    def body(rank):
        net = _net()
        rehearse.check_replicas(net)
        if rank == 2:
            net[0].bias.data[1] += 1
        rehearse.check_replicas(net, name="after")

    report = report_of(body, ranks=4)
    assert report.headline.startswith('replicas of "after" differ in check #1: rank 2 has a different "0.bias"')


def test_replicas_of_shards_at_a_forward():
    def body(rank):
        net = _hybrid(_net())
        for number in range(3):
            _loss(net, _part(rank, number)).backward()
            if rank == 3 and number == 1:
                with torch.no_grad():
                    net[0].weight.to_local().add_(1)

    report = report_of(body, ranks=4)
    assert "FSDP #1" in report.text and "rank 3" in report.text, report.text
    assert "differ" in report.text


@pytest.mark.parametrize("reduces", [True, False])
def test_steps_of_gradients_that_nobody_reduced(reduces):
    def body(rank):
        net = _net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for number in range(3):
            optimizer.zero_grad()
            _loss(net, _part(rank, number)).backward()
            for each in net.parameters() if reduces else ():
                dist.all_reduce(each.grad, dist.ReduceOp.AVG)
            optimizer.step()

    remark = "ranks 0-3: stepped an optimizer of 103 parameters 3 times, and no call after a step"
    remarks = json.loads(report_of(body, ranks=4).json)["remarks"]
    assert any(each.startswith(remark) for each in remarks) == (not reduces), remarks


def test_finite():
    def body(rank):
        rehearse.check_finite({"x": torch.ones(3)})
        rehearse.check_finite({"x": torch.tensor([1.0, float("nan") if rank == 1 else 0.0])})

    report = report_of(body)
    assert report.verdict == "CHECK FAILED" and "rank 1" in report.headline, report.text


def test_own_check():
    def body(rank):
        rehearse.expect(True, "the loss falls")
        rehearse.expect(rank != 1, "the loss falls", "3 after 2")

    report = report_of(body)
    assert report.verdict == "CHECK FAILED"
    assert report.headline.startswith('rank 1: check "the loss falls" did not hold: 3 after 2'), report.headline


def test_label_is_compared():
    def body(rank):
        with rehearse.label("a" if rank else "b"):
            dist.all_reduce(torch.ones(1))

    report = report_of(body)
    assert report.verdict == "MISMATCH" and "label" in report.headline, report.headline


def test_saved_state():
    def body(rank):
        net = _net()
        optimizer = torch.optim.AdamW(net.parameters(), 0.1)
        _loss(net, _part(0)).backward()
        optimizer.step()
        records = [None] * dist.get_world_size()
        dist.all_gather_object(records, rehearse.saved_record(net, optimizer))
        other = copy.deepcopy(net)
        again = torch.optim.AdamW(other.parameters(), 0.1)
        again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        rehearse.check_saved(records, other, again)
        for state in again.state.values():
            state["exp_avg"].zero_()
        rehearse.check_saved(records, other, again)

    report = report_of(body)
    assert report.verdict == "CHECK FAILED" and "exp_avg" in report.headline, report.text


def test_time_and_results():
    def body(rank):
        before = rehearse.now()
        rehearse.compute(1.5)
        assert rehearse.now() - before == pytest.approx(1.5)
        rehearse.result("loss", 0.5)
        rehearse.progress(1, 2, "half")
        assert rehearse.rank() == dist.get_rank() == rank

    on_ranks(body)


def test_folders_are_of_the_run():
    def body(rank):
        with open(os.path.join(rehearse.scratch_folder(), "own"), "x") as file:
            file.write(str(rank))
        if rank == 0:
            torch.save(torch.ones(2), os.path.join(rehearse.shared_folder(), "all.pt"))
        dist.barrier()
        assert torch.load(os.path.join(rehearse.shared_folder(), "all.pt")).tolist() == [1, 1]

    for _ in range(2):
        on_ranks(body)
    assert rehearse.scratch_folder() == rehearse.shared_folder() == os.getcwd()


def test_without_rehearse_the_checks_do_nothing():
    code = (
        "import torch, rehearse\n"
        "net = torch.nn.Linear(2, 2)\n"
        "with rehearse.label('a'): rehearse.check_replicas(net); rehearse.compute(0.0)\n"
        "rehearse.expect(True, 'it holds')\n"
        "print(rehearse.rank(), rehearse.now() > 0)\n"
    )
    environ = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    ran = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert ran.stdout == "-1 True\n", ran.stderr


@pytest.mark.parametrize("is_reduced", [True, False])
def test_optimizers_whose_parameters_never_have_gradients(is_reduced):
    def body(rank):
        model = torch.nn.Linear(4, 4)
        fully_shard(model)
        model.set_requires_gradient_sync(is_reduced)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    text = " ".join(on_ranks(body, ranks=2).text.split())
    assert ("ranks 0-1: stepped an optimizer again and again whose" in text) != is_reduced, text
