# SPDX-License-Identifier: BSD-3-Clause
"""The table of variables that are a rank's own has all that training binds anew."""

import json
import sys
import time

import pytest
import torch
import torch.distributed as dist
from ranks import on_ranks, report_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


_SHARED = "ranks share what this run has changed in packages: "


@pytest.fixture
def watched(monkeypatch):
    """All of torch's modules are watched."""
    monkeypatch.setenv("REHEARSE_REBOUND", "all")


def rebound(report):
    """What the run has bound anew, although it is in no table."""
    remarks = [each for each in json.loads(report.json)["remarks"] if each.startswith(_SHARED)]
    return remarks[0][len(_SHARED) : remarks[0].index(";")] if remarks else ""


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
def test_nothing_else_is_bound_anew(watched, body):
    assert rebound(on_ranks(body)) == ""


def test_a_variable_that_the_table_lacks_is_found(watched):
    def body(rank):
        torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX = "other"

    assert rebound(on_ranks(body)) == "torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX"


def test_what_a_rank_replaces_in_classes_of_torch_is_told():
    def body(rank):
        if rank == 1:
            torch.nn.Linear.forward = lambda self, value: value

    assert rebound(on_ranks(body)) == "torch.nn.modules.linear.Linear.forward"


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_optimizers_change_nothing_of_torch(optimizer):
    assert rebound(on_ranks(lambda rank: optimizer([torch.zeros(3, requires_grad=True)], lr=0.1).step())) == ""


def test_variables_of_the_table_are_a_ranks_own():
    def body(rank):
        torch.nn.modules.module._global_forward_hooks["own"] = rank
        dist.barrier()
        assert torch.nn.modules.module._global_forward_hooks["own"] == rank
        del torch.nn.modules.module._global_forward_hooks["own"]

    on_ranks(body)


def test_the_last_reference_to_a_variable_goes_in_its_rank():
    """Code that an object runs when it goes must not run inside of a switch between ranks."""
    gone = []

    class Hook:
        def __del__(self):
            time.sleep(0)  # gives the interpreter lock away
            gone.append((self.rank, dist.get_rank()))

        def __call__(self, *_):
            pass

    def body(rank):
        for _ in range(10):
            sys.excepthook = Hook()
            sys.excepthook.rank = rank
            dist.barrier()
        assert gone.count((rank, rank)) >= 7  # the last ones go at later switches
        assert all(made_by == gone_in for made_by, gone_in in gone)

    on_ranks(body)


def test_a_variable_may_hold_the_last_reference_to_a_model():
    """Its reducer takes the interpreter lock when it goes."""

    def body(rank):
        _train(DistributedDataParallel(_model()))
        sys.excepthook = DistributedDataParallel(_model()).forward
        dist.barrier()
        sys.excepthook = sys.__excepthook__
        if rank != 2:
            dist.barrier()

    assert "rank 2" in report_of(body, ranks=4).text


MODULES = {
    "itself.py": """from __future__ import annotations
import dataclasses, sys
own = sys.modules[__name__]
own.VALUE = 3
@dataclasses.dataclass
class Settings:
    rate: float = 0.1
assert own.Settings().rate == 0.1 and own.__name__ == "itself" and own.__spec__.name == "itself"
""",
    "ring_a.py": "NAMES = ['a']\nimport ring_b\n",
    "ring_b.py": "import ring_a\nring_a.NAMES.append('b')\n",
    "package/__init__.py": "",
    "package/inner.py": "import sys\nOWN = sys.modules['package.inner'] is sys.modules[__name__]\n",
}


def test_a_module_finds_itself_while_it_is_imported(tmp_path):
    (tmp_path / "package").mkdir()
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)

    def body(rank):
        sys.path.insert(0, str(tmp_path))
        import itself
        import package.inner
        import ring_a

        assert itself.VALUE == 3 and ring_a.NAMES == ["a", "b"] and package.inner.OWN

    on_ranks(body, ranks=2)
