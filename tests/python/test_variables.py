# SPDX-License-Identifier: BSD-3-Clause
"""The table of variables that are a rank's own has all that training binds anew."""

import pytest
import torch
import torch.distributed as dist
from ranks import on_ranks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


@pytest.fixture
def rebound(tmp_path, monkeypatch):
    """What runs have bound anew, although it is in no table."""
    file = tmp_path / "rebound.txt"
    monkeypatch.setenv("REHEARSE_REBOUND", str(file))

    def names():
        return sorted(set(file.read_text().split()))

    return names


def _train(model, steps=3):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def _model():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 8))


def replicated(rank):
    _train(DistributedDataParallel(_model()))


def sharded(rank):
    model = _model()
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    _train(model)


def groups_and_objects(rank):
    pair = dist.new_group([0, 1])
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, {"rank": rank})
    if rank < 2:
        dist.all_reduce(torch.ones(1), group=pair)
    dist.destroy_process_group()
    dist.init_process_group("gloo")
    dist.barrier()


def checkpointed(rank):
    layer = torch.nn.Linear(8, 8)
    value = torch.randn(2, 8, requires_grad=True)
    torch.utils.checkpoint.checkpoint(layer, value, use_reentrant=False).sum().backward()
    with torch.autocast("cpu"), torch.random.fork_rng():
        layer(value)


@pytest.mark.parametrize("body", [replicated, sharded, groups_and_objects, checkpointed])
def test_nothing_else_is_bound_anew(rebound, body):
    on_ranks(body)
    assert rebound() == []


def test_a_variable_that_the_table_lacks_is_found(rebound):
    def body(rank):
        torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX = "other"

    on_ranks(body)
    assert rebound() == ["torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX"]


def test_variables_of_the_table_are_a_ranks_own():
    def body(rank):
        torch.nn.modules.module._global_forward_hooks["own"] = rank
        dist.barrier()
        assert torch.nn.modules.module._global_forward_hooks["own"] == rank
        del torch.nn.modules.module._global_forward_hooks["own"]

    on_ranks(body)
