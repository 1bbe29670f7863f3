# SPDX-License-Identifier: BSD-3-Clause
"""Runs Python code on all ranks of a world."""

import contextvars
import inspect
import os
import pickle
import sys
import traceback

import torch.distributed as dist

import _rehearse

from . import _checks, _exit, _instead, _modules, _rebound, _setup, _warm


class Failed(AssertionError):
    """A run did not end as it should. `report` is the Report."""

    def __init__(self, report):
        super().__init__("\n" + report.text)
        self.report = report


class Report:
    """How a run ended. `text` is what the command prints; `json` has all facts."""

    def __init__(self, facts):
        self.verdict, self.headline = facts["verdict"], facts["headline"]
        self.text, self.json = facts["text"], facts["json"]
        self.identity, self.exit_code = facts["identity"], facts["exit_code"]

    def __str__(self):
        return self.text


def describe(error):
    """None if the exception is no failure; otherwise its text and the places of its traceback, innermost first."""
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return None
    places = []
    entry = error.__traceback__
    while entry is not None:
        places.append((entry.tb_frame.f_code, entry.tb_lasti))
        entry = entry.tb_next
    places.reverse()
    if isinstance(error, _rehearse.CheckError):
        return str(error), places
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r})", places
    return "".join(traceback.format_exception_only(type(error), error)).strip(), places


def in_copy(run, quiet=False, on_start=None):
    """Runs `run` in a copy of this process, so that every run begins alike. Returns what it returns.

    `on_start` gets the copy's pid."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        os.close(reader)
        if quiet:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        data = pickle.dumps(run())
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(writer, "wb") as out:
            out.write(data)
        os._exit(0)
    if on_start is not None:
        on_start(process)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    _, status = os.waitpid(process, 0)
    if not data:
        raise RuntimeError(f"rehearse: the process of the run ended with status {status}")
    return pickle.loads(data)


def _explained(begin, options):
    """The facts of a run and, if it failed, of its repetition with call sites."""
    facts = in_copy(lambda: _rehearse.run_world(begin, describe, {**options, "explain_failures": False}))
    if facts["verdict"] == "OK":
        return facts

    def repeat():
        _instead.begin_repetition()
        return _rehearse.run_world(begin, describe, {**options, "call_sites": True})

    again = in_copy(repeat, quiet=True)
    return again if again["identity"] == facts["identity"] else facts


def at_end_of_rank():
    _checks.at_end_of_rank()
    _rebound.at_end_of_rank()


def run(function, ranks=2, seed=1, check=True, init=True, **options):
    """Runs `function` on every rank: function(), function(rank) or function(rank, size).

    With `init`, each rank is in the default process group meanwhile. Returns the Report; with `check`, raises Failed
    unless the verdict is OK.
    """
    _setup.once()
    _warm.watch_libraries_of(function)
    takes = len(inspect.signature(function).parameters)
    context = contextvars.copy_context()  # torch's modules keep there what the host has configured

    def body(rank, size):
        if init:
            dist.init_process_group("gloo")
        function(*(rank, size)[:takes])
        at_end_of_rank()
        if init and dist.is_initialized():
            dist.destroy_process_group()

    def begin(rank, size):
        _setup.begin_rank(rank, size, seed)
        return lambda: context.copy().run(body, rank, size)

    report = Report(_explained(begin, {**options, "ranks": ranks, "seed": seed}))
    if check and report.verdict != "OK":
        raise Failed(report)
    return report


def begin_script(rank, size, path, arguments):
    """The body of a rank that runs the script at `path`, as torchrun does."""
    _setup.begin_rank(rank, size, _rehearse.seed())
    of_launcher = [f"--local-rank={rank}"] if os.environ.get("REHEARSE_LAUNCHER") == "launch" else []
    sys.argv = [path, *of_launcher, *arguments]
    sys.path[0] = os.path.dirname(path)
    main = _modules.new_main(path)

    def body():
        with _exit.as_of_process():
            with open(path, "rb") as file:
                exec(compile(file.read(), path, "exec"), vars(main))
            at_end_of_rank()

    return body


def command(words):
    """Runs the command with scripts as programs. Returns its exit code."""
    _setup.once()
    from . import _parent

    script = _parent.script_in(words)
    if script is not None:
        return _parent.run(words, *script)
    return _rehearse.run_command(words, _warm.import_libraries_of, begin_script, describe)
