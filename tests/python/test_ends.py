# SPDX-License-Identifier: BSD-3-Clause
"""However a world ends, there is a report: never a signal."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist
from ranks import report_of


def _fail_later():
    time.sleep(0.5)
    raise ValueError("over")


def asleep():
    time.sleep(5)


def in_a_hook():
    value = torch.ones(1, requires_grad=True)
    value.register_hook(lambda _: time.sleep(5))
    (value * 2).sum().backward()


def in_a_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def catches_exceptions():
    while True:
        try:
            dist.barrier()
        except Exception:
            pass


def catches_all_in_collectives():
    while True:
        try:
            dist.barrier()
        except BaseException:
            pass


def catches_all_in_sleeps():
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass


def in_a_thread():
    thread = threading.Thread(target=lambda: time.sleep(5))
    thread.start()
    thread.join()


OTHERS = (
    asleep,
    in_a_hook,
    in_a_lock,
    catches_exceptions,
    catches_all_in_collectives,
    catches_all_in_sleeps,
    in_a_thread,
)


@pytest.mark.parametrize("other", OTHERS)
def test_a_rank_fails_while_the_other_is(other):
    report = report_of(lambda rank: _fail_later() if rank == 0 else other())
    assert report.verdict == "RANK FAILED"
    assert report.headline.startswith("rank 0: ValueError: over")
    assert "culprit: rank 0 at test_ends.py:" in report.text and "in _fail_later" in report.text


def test_exit_codes():
    report = report_of(lambda rank: sys.exit(3) if rank == 1 else dist.barrier())
    assert report.verdict == "RANK FAILED"
    assert "rank 1: sys.exit(3)" in report.headline
    assert report_of(lambda rank: sys.exit(0), init=False).verdict == "OK"


def test_a_missing_call_names_its_line():
    def body(rank):
        if rank != 1:
            dist.all_reduce(torch.ones(2))
        dist.barrier()

    report = report_of(body, ranks=3)
    assert report.verdict == "MISMATCH"
    assert "culprit: rank 1 at test_ends.py:" in report.text


def test_ranks_that_send_first_are_a_deadlock():
    def body(rank):
        value = torch.zeros(4)
        dist.send(value, dst=1 - rank)
        dist.recv(value, src=1 - rank)

    report = report_of(body)
    assert report.verdict == "DEADLOCK", report.text
    assert "ranks 0 -> 1 -> 0 wait for each other" in report.headline


def test_a_rank_that_leaves_a_loop_early_is_the_culprit():
    def body(rank):
        for _ in range(3 if rank == 0 else 5):
            dist.all_reduce(torch.ones(2))

    report = report_of(body, ranks=4)
    assert report.verdict == "DEADLOCK", report.text
    assert "rank 0 has ended and will never come" in report.headline


def test_a_timeout_that_a_rank_turns_into_its_own_error_is_its_failure():
    def body(rank):
        try:
            dist.recv(torch.zeros(1), src=1 - rank)
        except dist.DistBackendError:
            raise ValueError("no data") from None

    report = report_of(body)
    assert report.verdict == "RANK FAILED" and "ValueError: no data" in report.headline, report.text


def test_groups_of_other_ranks_under_one_name_are_refused():
    def body(rank):
        group = dist.new_group([rank % 2, rank % 2 + 2])
        dist.all_reduce(torch.ones(1), group=group)

    report = report_of(body, ranks=4)
    assert "all ranks must call new_group() for all groups" in report.text.replace("\n", " "), report.text

    def right(rank):
        for first in (0, 1):
            group = dist.new_group([first, first + 2])
            if rank % 2 == first:
                dist.all_reduce(torch.ones(1), group=group)

    assert report_of(right, ranks=4).verdict == "OK"


SCRIPT = """
import argparse, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
parser = argparse.ArgumentParser()
parser.add_argument("--extra", type=int, default=-1)
given = parser.parse_args()
if __name__ == "__main__":
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    for _ in range(3):
        model(torch.randn(8, 4)).sum().backward()
    if dist.get_rank() == given.extra:
        dist.all_reduce(torch.ones(1))
    dist.barrier()
    print("ended", dist.get_rank(), flush=True)
    dist.destroy_process_group()
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def _command(folder, *words, **variables):
    return subprocess.run(
        [sys.executable, "-m", "rehearse", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"], **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


def _identity(text):
    return text.partition("identity=")[2].split()[0]


def test_a_script_runs_as_it_is(script):
    runs = [_command(script, "run", "train.py", "--ranks=4", PYTHONHASHSEED=seed) for seed in ("1", "2", "random")]
    for run in runs:
        assert run.returncode == 0, run.stdout + run.stderr
        assert sorted(line for line in run.stdout.splitlines() if line.startswith("ended")) == [
            f"ended {rank}" for rank in range(4)
        ]
    assert len({_identity(run.stdout) for run in runs}) == 1
    assert "the same run as in the log" in _command(script, "replay", "rehearse-out/train/run.rlog").stdout


SHARES_A_PACKAGE = """
import torch.distributed as dist, counting
dist.init_process_group("gloo")
counting.count += 1
dist.barrier()
print("count", counting.count, flush=True)
"""


def test_what_ranks_share_of_a_package_is_told_and_own_cures_it(tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "counting.py").write_text("count = 0\n")
    (tmp_path / "train.py").write_text(SHARES_A_PACKAGE)
    variables = {"PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(library)])}
    shared = _command(tmp_path, "run", "train.py", "--ranks=2", **variables)
    assert shared.stdout.count("count 2") == 2, shared.stdout + shared.stderr
    assert "ranks share what this run has changed in packages: counting.count;" in " ".join(shared.stdout.split())
    own = _command(tmp_path, "run", "train.py", "--ranks=2", "--own=counting", **variables)
    assert own.stdout.count("count 1") == 2, own.stdout + own.stderr
    assert "ranks share" not in own.stdout
    refused = _command(tmp_path, "run", "train.py", "--ranks=2", "--own=numpy", **variables)
    assert "--own=numpy: Rehearse or torch uses this package" in refused.stderr


def test_a_planted_bug_is_named_with_its_line(script):
    run = _command(script, "run", "train.py", "--ranks=4", "--", "--extra=2")
    assert run.returncode == 2, run.stdout + run.stderr
    assert "culprit: rank 2 at train.py:13" in run.stdout
    assert "train.py:14" in run.stdout
    again = _command(script, "replay", "rehearse-out/train/run.rlog")
    assert "the same run as in the log" in again.stdout and _identity(again.stdout) == _identity(run.stdout)


def test_a_sweep_finds_it_and_counts_one_bug(script):
    sweep = _command(script, "sweep", "train.py", "--ranks=4", "--seeds=1..6", "--keep-going", "--", "--extra=2")
    assert sweep.returncode == 2, sweep.stdout + sweep.stderr
    assert "6 of 6 seeds" in sweep.stdout and "1 bug" in sweep.stdout
    assert _command(script, "sweep", "train.py", "--ranks=4", "--seeds=1..6").returncode == 0


def test_what_is_wrong_with_the_command(script):
    assert "No such file" in _command(script, "run", "nothing.py").stderr
    assert "there is no option" in _command(script, "run", "train.py", "--extra=2").stderr


def test_what_ranks_do_instead_is_a_remark():
    from torch.utils.data import DataLoader

    def body(rank):
        compiled = torch.compile(lambda value: value + dist.get_rank())
        assert compiled(torch.zeros(1)).item() == rank
        loader = DataLoader(list(range(8)), batch_size=2, num_workers=2, prefetch_factor=4)
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]

    text = report_of(body).text
    assert "ranks 0-1: ran functions eagerly that torch.compile() was to compile" in text
    assert "ranks 0-1: loaded data by itself, without the workers that its DataLoader asks for" in text


def test_what_a_rank_cannot_have_is_refused_by_name():
    import multiprocessing

    def starts_a_process(rank):
        multiprocessing.Process(target=print).start()

    def makes_a_store(rank):
        dist.TCPStore("localhost", 29501, 2, rank == 0)

    def serves(rank):
        socket.create_server(("localhost", 0))

    def moves_to_a_gpu(rank):
        torch.ones(1).cuda()

    refused = {starts_a_process: "multiprocessing", makes_a_store: "TCPStore", serves: "socket", moves_to_a_gpu: "GPU"}
    for body, what in refused.items():
        report = report_of(body)
        assert report.verdict == "RANK FAILED"
        assert what in report.headline and "a fiber of one process" in report.headline


def test_a_change_of_folder_is_a_ranks_own(tmp_path):
    before = os.getcwd()
    assert "cannot be written" not in report_of(lambda rank: os.chdir(tmp_path)).text
    assert os.getcwd() == before


def test_replicas_that_differ_are_a_remark():
    def body(rank, forgets):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(4, 2)).sum().backward()
            if forgets and rank == 1:
                model.module.weight.grad.mul_(2)
            optimizer.step()

    right, wrong = (report_of(lambda rank: body(rank, forgets)).text for forgets in (False, True))
    assert right.startswith("OK") and "differ" not in right
    assert wrong.startswith("OK") and 'remark: replicas of "DDP #1 on group "world"" differ in check #2' in wrong


def _one_step(rate_of, uses_module=False):
    """A script's main(): the model is gone when the rank ends, and the group before it."""

    def body(rank):
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=rate_of(rank))
        (model.module if uses_module else model)(torch.ones(4, 2)).sum().backward()
        optimizer.step()
        with torch.no_grad():
            model(torch.ones(1, 2))
        dist.destroy_process_group()

    return report_of(body, ranks=4, init=False)


def test_replicas_that_differ_after_the_last_step_are_a_remark():
    text = " ".join(_one_step(lambda rank: 0.2 if rank == 3 else 0.1).text.split())
    assert "remark: replicas" in text and "rank 3" in text, text
    assert "remark" not in _one_step(lambda rank: 0.1).text


def test_a_model_whose_ddp_computes_no_gradients_is_a_remark():
    text = " ".join(_one_step(lambda rank: 0.1, uses_module=True).text.split())
    assert "was called with grad mode off only, but its module has gradients" in text, text


def test_a_script_ends_as_a_process_does(tmp_path):
    """Its own print, functions at exit, excepthook and os._exit() are those of one rank."""
    (tmp_path / "train.py").write_text(
        "import atexit, builtins, os, sys, torch.multiprocessing as mp, torch.distributed as dist\n"
        "mp.set_start_method('spawn')\n"
        "dist.init_process_group('gloo')\n"
        "rank, of_python = dist.get_rank(), print\n"
        "def print(*words):\n"
        "    if rank == 0:\n"
        "        of_python(*words)\n"
        "builtins.print = print\n"
        "atexit.register(lambda: sys.stdout.write(f'at exit of {rank}\\n'))\n"
        "sys.excepthook = lambda kind, error, trace: sys.stdout.write(f'hook of {rank}: {error}\\n')\n"
        "dist.barrier()\n"
        "builtins.print('one line')\n"
        "if rank == 1:\n"
        "    os._exit(0)\n"
        "if rank == 2 and 'fail' in sys.argv:\n"
        "    raise ValueError('no data')\n"
    )
    right = _command(tmp_path, "run", "train.py", "--ranks=3")
    assert right.returncode == 0, right.stdout + right.stderr
    assert right.stdout.count("one line") == 1
    assert [rank for rank in range(3) if f"at exit of {rank}" in right.stdout] == [0, 2]
    wrong = _command(tmp_path, "run", "train.py", "--ranks=3", "--", "fail")
    assert wrong.returncode == 1 and "hook of 2: no data\nat exit of 2\n" in wrong.stdout, wrong.stdout + wrong.stderr
    assert "RANK FAILED: rank 2: ValueError: no data" in wrong.stdout


def test_a_run_begins_at_the_date_that_it_is_given(tmp_path):
    (tmp_path / "when.py").write_text("import datetime\nprint(datetime.datetime.now(datetime.timezone.utc))\n")
    assert "2020-01-01 00:00:00" in _command(tmp_path, "run", "when.py", "--ranks=1").stdout
    dated = _command(tmp_path, "run", "when.py", "--ranks=1", "--date=2026-12-01T09:30:00Z")
    assert "2026-12-01 09:30:00" in dated.stdout, dated.stdout + dated.stderr
    replay = dated.stdout.partition("replay: python -m rehearse ")[2].splitlines()[0].split()
    assert "2026-12-01 09:30:00" in _command(tmp_path, *replay).stdout
    wrong = _command(tmp_path, "run", "when.py", "--date=tomorrow")
    assert wrong.returncode != 0 and "--date" in wrong.stderr and "2026-12-01" in wrong.stderr
