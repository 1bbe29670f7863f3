# SPDX-License-Identifier: BSD-3-Clause
"""What the parent of ranks finds in multiprocessing: processes start as ranks, and share objects of one process."""

import multiprocessing
import multiprocessing.context
import multiprocessing.process
import os
import sys

import torch.multiprocessing

import _rehearse

from . import _ranks, _shared_objects

# Packages whose processes are no ranks.
_LIBRARIES = ("multiprocessing", "concurrent", "torch.utils.data")
_process = multiprocessing.process


class _Context:
    """What start_processes() returns."""

    def __init__(self, processes):
        self.processes = processes

    def pids(self):
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        for process in self.processes:
            process.join(timeout)
        return True


def _call(function, index, arguments):
    function(index, *arguments)


def _start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", *_, **__):
    context = multiprocessing.get_context(start_method)
    processes = [context.Process(target=_call, args=(fn, index, args), daemon=daemon) for index in range(nprocs)]
    for process in processes:
        process.start()
    return _Context(processes).join() and None if join else _Context(processes)


def _spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    return _start_processes(fn, args, nprocs, join, daemon, start_method)


def _is_of_library(depth=2):
    return sys._getframe(depth).f_globals.get("__name__", "").startswith(_LIBRARIES)


def _replace_makers():
    for name, make in _shared_objects.MAKERS.items():
        of_context = getattr(multiprocessing.context.BaseContext, name)

        def maker(*arguments, _make=make, _real=getattr(multiprocessing, name), **options):
            return (_real if _is_of_library() else _make)(*arguments, **options)

        def method(self, *arguments, _make=make, _real=of_context, **options):
            return _real(self, *arguments, **options) if _is_of_library() else _make(*arguments, **options)

        setattr(multiprocessing.context.BaseContext, name, method)
        for module in (multiprocessing, torch.multiprocessing):
            setattr(module, name, maker)


def _replace_processes(parent):
    base = _process.BaseProcess
    real = {name: vars(base)[name] for name in ("start", "join", "is_alive", "terminate", "kill")}
    properties = {name: vars(base)[name] for name in ("exitcode", "pid", "sentinel")}

    def is_own(process):
        return "_rehearse_job" in vars(process)

    def start(self):
        target = getattr(self, "_target", None)
        if _ranks.in_rank() or getattr(target, "__module__", "").startswith(_LIBRARIES):
            return real["start"](self)
        parent.start(self)

    def after_world(name, result):
        def method(self, *arguments, **options):
            if not is_own(self):
                return real[name](self, *arguments, **options)
            if self._rehearse_world > parent.worlds:
                parent.await_world()
            parent.runs_on = False
            return result

        setattr(base, name, method)

    def exitcode(self):
        if not is_own(self):
            return properties["exitcode"].fget(self)
        self.join()
        return 0

    def pid(self):
        return os.getpid() if is_own(self) else properties["pid"].fget(self)

    base.start = start
    for name, result in (("join", None), ("is_alive", False), ("terminate", None), ("kill", None)):
        after_world(name, result)
    base.exitcode, base.pid = property(exitcode), property(pid)
    base.ident = base.pid


def install(parent):
    """`parent` starts processes by start() and runs them by await_world()."""
    _shared_objects.parent = parent
    _replace_makers()
    _replace_processes(parent)
    for module in (torch.multiprocessing, sys.modules["torch.multiprocessing.spawn"]):
        module.start_processes, module.spawn = _start_processes, _spawn
    _rehearse.add_variable(vars(_process), "_current_process", None)
