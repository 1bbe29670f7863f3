# SPDX-License-Identifier: BSD-3-Clause
"""What a rank gets instead of what it asks for, because ranks are fibers of one process.

The report has a remark about it, or there is an error that says what to do.
"""

import functools
import importlib.util
import multiprocessing.process
import pathlib
import pdb
import socket
import sys

import torch
import torch.distributed as dist

import _rehearse

from . import _cuda, _ranks

_NO_WORKERS = {
    "num_workers": 0,
    "prefetch_factor": None,
    "persistent_workers": False,
    "timeout": 0,
    "multiprocessing_context": None,
}


def _in_ranks(holder, name, instead):
    """Replaces `name` of `holder` for ranks by instead(original, *arguments, **options)."""
    original = getattr(holder, name)

    @functools.wraps(original)
    def function(*arguments, **options):
        if not _ranks.in_rank():
            return original(*arguments, **options)
        return instead(original, *arguments, **options)

    setattr(holder, name, function)


def _refuse(holder, name, what, instead):
    def refused(_, *arguments, **options):
        raise RuntimeError(f"rehearse: {what} is not possible in a rank, which is a fiber of one process: {instead}")

    _in_ranks(holder, name, refused)


# A compiled function keeps the rank's number as a constant in caches that all ranks share.
def _run_eagerly(_, model=None, **options):
    _rehearse.note_habit("ran functions eagerly that torch.compile() was to compile")
    return model if model is not None else lambda function: function


def _keep_eager(_, self, *arguments, **options):
    _run_eagerly(None, self)


def _load_inline(original, self, *arguments, **options):
    # The sixth argument is num_workers; those behind it are seldom given by place.
    named = dict(zip(("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers"), arguments))
    if {**named, **options}.get("num_workers"):
        _rehearse.note_habit("loaded data by itself, without the workers that its DataLoader asks for")
        options = {**named, **options, **_NO_WORKERS}
        arguments = arguments[6:]
        if arguments:
            raise RuntimeError("rehearse: name the arguments of DataLoader behind num_workers")
    original(self, *arguments, **options)


def load_data_inline_in_parent():
    """What a script that starts its own ranks loads before them, it loads by itself."""
    of_ranks = torch.utils.data.DataLoader.__init__

    def __init__(self, *arguments, **options):
        if not _ranks.in_rank():
            options.update({name: value for name, value in _NO_WORKERS.items() if name in options})
        of_ranks(self, *arguments, **options)

    torch.utils.data.DataLoader.__init__ = __init__


class _EmptyProfile:
    """What torch.profiler gets at its end, in place of Kineto's result."""

    def events(self):
        return []

    def experimental_event_tree(self):
        return []

    def trace_start_ns(self):
        return 0

    def save(self, path):
        pathlib.Path(path).write_text('{"schemaVersion": 1, "traceEvents": []}')


# Kineto records all of a process at once, and a second rank that started it would end the process.
def _record_nothing(*_, **__):
    _rehearse.note_habit("recorded nothing with torch.profiler; the run's trace.json has its calls")
    return _EmptyProfile()


def begin_repetition():
    """A run that is repeated for its report does not stop at breakpoints."""
    sys.breakpointhook = pdb.set_trace = lambda *_, **__: None


def install():
    _in_ranks(torch, "compile", _run_eagerly)
    _in_ranks(torch.nn.Module, "compile", _keep_eager)
    _in_ranks(torch.utils.data.DataLoader, "__init__", _load_inline)
    outside = (
        "if it is to be a rank, --launcher=script runs the script once, and what it starts are ranks; "
        'otherwise start it outside of ranks, under if __name__ == "__main__"'
    )
    _refuse(multiprocessing.process.BaseProcess, "start", "a process of multiprocessing", outside)
    _refuse(dist, "TCPStore", "a TCPStore", "use init_method=\"env://\", or the store of the default group")
    _refuse(socket.socket, "listen", "a socket that waits for other processes", "use messages or the group's store")
    if not _cuda.is_asked():
        _refuse(torch.cuda, "_lazy_init", "a tensor on a GPU", "run with --cuda, which takes the CPU for it")
    for name in ("_interpreters", "_xxsubinterpreters"):
        if importlib.util.find_spec(name) is not None:
            _refuse(importlib.import_module(name), "create", "a sub-interpreter", "use threads")
    for name in ("_prepare_profiler", "_enable_profiler", "_disable_profiler"):
        _in_ranks(torch.autograd.profiler, name, _record_nothing)
    _in_ranks(torch.autograd, "_add_metadata_json", _record_nothing)
    if dist.rpc.is_available():
        _refuse(dist.rpc, "init_rpc", "torch.distributed.rpc", "use collectives and messages")
