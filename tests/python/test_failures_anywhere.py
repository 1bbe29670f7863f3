# SPDX-License-Identifier: BSD-3-Clause
"""One rank raises at each place of a step in turn, while the others are wherever they are: always a report."""

import queue
import sys
import threading
import time

import numpy
import torch
import torch.distributed as dist
from ranks import command, report_of
from torch.nn.parallel import DistributedDataParallel


class Meet(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        dist.barrier()
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        dist.barrier()
        return gradient.clone()


def _hook(gradient):
    time.sleep(0.001)
    return gradient * 1.0


def _produce(items):
    for item in range(3):
        time.sleep(0.01)
        items.put(item)


def _steps(rank):
    for _ in range(2):
        _step(rank)


def _step(rank):
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    model.module.weight.register_hook(_hook)
    items = queue.Queue(maxsize=1)
    thread = threading.Thread(target=_produce, args=(items,))
    thread.start()
    total = sum(items.get() for _ in range(3))
    thread.join()
    data = torch.from_numpy(numpy.sort(numpy.random.rand(8, 4).astype("float32"), axis=0))
    loss = Meet.apply(model(data)).sum() * total
    loss.backward()
    lock = threading.Lock()
    with lock:
        sizes = sorted([3, 1, 2], key=lambda size: -size)
        dist.all_reduce(torch.tensor(float(sizes[0])))
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, {"rank": rank})


class Planted(Exception):
    pass


def _raise_at(number):
    """From now on, the thread raises at the line with this number that it comes to in this file."""
    left = [number]

    def trace(frame, event, argument):
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise Planted(f"line {frame.f_lineno}")
        return trace

    sys.settrace(trace)
    return left


def _lines_of_steps():
    """How many lines a rank comes to."""
    counted = []

    def body(rank):
        left = _raise_at(10**6)
        _steps(rank)
        sys.settrace(None)
        counted.append(10**6 - left[0])
        if rank == 0:
            assert counted[0] < 0, f"lines: {counted[0]}"

    text = report_of(body).text
    return int(text.partition("lines: ")[2].split()[0])


def test_a_rank_fails_at_any_line():
    lines = _lines_of_steps()
    assert lines > 40
    for number in range(1, lines + 1):

        def body(rank):
            if rank == 1:
                _raise_at(number)
            _steps(rank)

        report = report_of(body)
        assert report.verdict == "RANK FAILED", (number, report.text)
        assert "rank 1" in report.headline and "Planted: line" in report.headline, (number, report.text)


FAULT = """import ctypes, os
import torch.distributed as dist
def read():
    ctypes.string_at(0)
dist.init_process_group()
if dist.get_rank() == 1:
    read()
"""


def test_a_fault_that_ends_the_process_names_its_line(tmp_path):
    (tmp_path / "train.py").write_text(FAULT)
    for words in (["run"], ["sweep", "--seeds=1..4", "--keep-going"]):
        ended = command(tmp_path, words[0], "train.py", *words[1:])
        assert "CRASHED" in ended.stdout and "rank 1 ended the process by SIGSEGV" in ended.stdout, ended.stderr
        assert "train.py:4 in read" in ended.stdout, ended.stdout
