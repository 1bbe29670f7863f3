# SPDX-License-Identifier: BSD-3-Clause
"""Reports in Python's terms: where stacks part, under which branch, and the tracebacks of ranks that raised."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
from ranks import report_of
from torch.nn.parallel import DistributedDataParallel


def _line_with(text):
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)


class Trainer:
    def __init__(self, rank):
        self.loss = 3.0 if rank == 1 else 1.0

    def skip(self):
        dist.all_reduce(torch.ones(2))

    def validate(self):
        dist.barrier()

    def run(self):
        for _ in range(2):
            if self.loss > 2.0:
                self.skip()
            else:
                self.validate()


def test_where_stacks_part():
    report = report_of(lambda rank: Trainer(rank).run(), ranks=4)
    assert report.verdict == "MISMATCH"
    culprit, others = _line_with("self.skip()"), _line_with("self.validate()")
    branch = _line_with("if self.loss > 2.0:")
    parting = json.loads(report.json)["parting"]
    assert parting["culprits"]["ranks"] == [1] and parting["others"]["ranks"] == [0, 2, 3]
    assert parting["culprits"]["place"]["line"] == culprit and parting["others"]["place"]["line"] == others
    assert parting["culprits"]["branch"] == "if self.loss > 2.0"
    assert parting["culprits"]["branch_line"] == branch
    text = " ".join(report.text.split())
    run = getattr(Trainer.run.__code__, "co_qualname", "run")  # code knows the class since 3.11
    assert (
        f"stacks part: rank 1 at test_reports.py:{culprit} in {run}, "
        f'under "if self.loss > 2.0" (line {branch}); ranks 0,2-3 at test_reports.py:{others} in {run}, '
        f'under "else of if self.loss > 2.0" (line {branch})'
    ) in text


def test_a_rank_that_leaves_out_a_backward_of_ddp():
    """The others learn of it from the future on which DDP waits."""

    def body(rank):
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        for step in range(3):
            with model.no_sync() if rank == 1 and step == 2 else contextlib.nullcontext():
                model(torch.randn(2, 4)).sum().backward()

    report = report_of(body, ranks=4)
    facts = json.loads(report.json)
    assert report.verdict == "DEADLOCK" and facts["culprits"] == [1], report.text
    backward = _line_with("model(torch.randn(2, 4)).sum().backward()")
    assert facts["places"] and all(each["place"]["file"] == __file__ for each in facts["places"])
    assert backward in [each["place"]["line"] for each in facts["places"]]


def _save(fast, rank):
    if fast:
        pass
    else:
        for _ in range(2):
            if rank == 0:
                dist.barrier()
    dist.all_reduce(torch.ones(4))


def test_stacks_part_at_the_innermost_condition():
    parting = json.loads(report_of(lambda rank: _save(False, rank), ranks=4).json)["parting"]
    assert parting["culprits"]["branch"] == "if rank == 0", parting


def test_stacks_that_do_not_part_add_nothing():
    def body(rank):
        dist.all_reduce(torch.ones(2 + rank % 2))

    assert "stacks part" not in report_of(body).text


def _load(path):
    return _parse(path)


def _parse(path):
    raise ValueError(f"bad file: {path}")


def test_traceback():
    def body(rank):
        dist.barrier()
        if rank == 1:
            _load("x.bin")
        dist.barrier()

    report = report_of(body, ranks=4)
    assert report.verdict == "RANK FAILED"
    (traceback,) = json.loads(report.json)["tracebacks"]
    assert traceback["ranks"] == [1]
    assert [line["source"] for line in traceback["lines"]] == [
        '_load("x.bin")',
        "return _parse(path)",
        'raise ValueError(f"bad file: {path}")',
    ]
    assert "traceback of rank 1:" in report.text
    assert 'in _parse: raise ValueError(f"bad file: {path}")' in report.text


def test_breakpoint_stops_one_rank_while_no_time_passes(tmp_path):
    script = tmp_path / "stops.py"
    script.write_text(
        "import time, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "rank = dist.get_rank()\n"
        "if rank == 1:\n"
        "    breakpoint()\n"
        "dist.all_reduce(torch.ones(1 + (rank == 2)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "rehearse", "run", str(script), "--ranks=4"],
        input="p rank * 10\nc\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    # The run is repeated for its report, and nobody is asked again.
    assert ran.stdout.count("(Pdb) 10\n") == 1, ran.stdout + ran.stderr
    assert "MISMATCH: rank 2 called" in ran.stdout and "t=0 ns" in ran.stdout
    assert "other decisions" not in ran.stdout


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed (./dev installs it)")
def test_gdb_shows_where_ranks_wait(tmp_path):
    (tmp_path / "stops.py").write_text(
        "import os, torch, torch.distributed as dist\n"
        "def meet():\n"
        "    dist.barrier()\n"
        "dist.init_process_group('gloo')\n"
        "if dist.get_rank() == 1:\n"
        "    dist.recv(torch.ones(1), 0)\n"
        "    open('stopped', 'w').write(str(os.getpid()))\n"
        "    while True: pass\n"
        "else:\n"
        "    dist.isend(torch.ones(1), 1)\n"
        "meet()\n"
    )
    stopped = tmp_path / "stopped"
    words = [sys.executable, "-m", "rehearse", "run", "stops.py", "--ranks=2"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while run.poll() is None and not (stopped.exists() and stopped.read_text()):
            time.sleep(0.05)
        process = stopped.read_text()
        script = os.path.join(os.path.dirname(__file__), "../../core/exec/monitor/rehearse-gdb.py")
        words = ["gdb", "-batch", "-nx", "-p", process, "-ex", f"source {script}", "-ex", "info ranks"]
        text = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
        os.kill(int(process), signal.SIGKILL)
    if "cannot call the program" in text:
        pytest.skip("this gdb cannot call functions of the program")
    assert "barrier #1 on group" in text and f"in meet at {tmp_path}/stops.py:3" in text, text
