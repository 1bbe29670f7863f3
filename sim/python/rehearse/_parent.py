# SPDX-License-Identifier: BSD-3-Clause
"""Scripts that start their own ranks: mp.spawn, start_processes, Process.

The script runs once, outside of ranks. The processes that it has started when it waits for one of them are the ranks
of a world, which a copy of this process runs by the command that was asked for. What they put into queues and
dictionaries comes back, and the script goes on.
"""

import ast
import contextlib
import io
import multiprocessing
import multiprocessing.process
import os
import random
import signal
import sys
import traceback
import types

import torch

import _rehearse

from . import _cuda, _exit, _instead, _modules, _multiprocessing, _packed, _ranks, _run, _setup, _shared_objects

_STARTERS = {"spawn", "start_processes", "Process"}
_process = multiprocessing.process


def starts_ranks(path):
    """Whether the script calls what starts processes, and imports it from multiprocessing."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return False
    imports = calls = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports = imports or any("multiprocessing" in each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(each.name for each in node.names)]
            imports = imports or any("multiprocessing" in name for name in names)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            calls = calls or name in _STARTERS
        elif isinstance(node, ast.ClassDef):
            calls = calls or any(getattr(base, "attr", getattr(base, "id", None)) == "Process" for base in node.bases)
    return imports and calls


def script_in(words):
    """(path, arguments) of the script that a command runs, if it starts its own ranks; otherwise None."""
    end = words.index("--") if "--" in words else len(words)
    operands = [word for word in words[2:end] if not word.startswith("-")]
    if words[1:2] not in (["run"], ["sweep"], ["replay"]) or not operands:
        return None
    path, arguments = operands[0], words[end + 1 :]
    if not path.endswith(".py"):
        path, of_file = _rehearse.program_of(path)
        arguments = arguments or of_file
    launcher = os.environ.get("REHEARSE_LAUNCHER", "auto")
    is_parent = launcher == "script" or launcher == "auto" and path.endswith(".py") and starts_ranks(path)
    return (os.path.abspath(path), arguments) if is_parent else None


class _Job:
    """A started process, as its rank needs it."""

    def __init__(self, process, method):
        kept = {name: value for name, value in vars(process).items() if name in _OF_TARGET or name[0] != "_"}
        shares = method != "fork" and not _cuda.is_asked()
        self.name = process.name
        self.method = method
        try:
            self.packed = _packed.Packed((type(process), kept), shares)
        except Exception as error:
            if method != "fork":
                raise
            raise RuntimeError(
                f"rehearse: {process.name} cannot be copied for a start by fork: {error}. Its target and arguments "
                'must be what a start by "spawn" takes, such as a function of a module'
            ) from error
        self.environ = dict(os.environ._data)
        self.globals = _globals_to_copy() if method == "fork" else {}
        self.generators = (torch.get_rng_state(), random.getstate(), _numpy_random().get_state())

    def begin(self):
        """In the rank: as the process begins."""
        if self.method == "fork":
            torch_state, python_state, numpy_state = self.generators
            torch.set_rng_state(torch_state)
            random.setstate(python_state)
            _numpy_random().set_state(numpy_state)

    def run(self):
        kind, kept = self.packed.unpack()
        process = kind.__new__(kind)
        vars(process).update(vars(_process._current_process), _name=self.name, **kept)
        _process._current_process = process
        process.run()


_OF_TARGET = ("_target", "_args", "_kwargs")


def _numpy_random():
    numpy = sys.modules.get("numpy")
    nothing = types.SimpleNamespace(get_state=lambda: None, set_state=lambda _: None)
    return numpy.random if numpy is not None else nothing


def _globals_to_copy():
    """What the parent's modules have that running their files again in a rank does not make alike: by module."""
    copies = {}
    for name, module in _ranks.current().modules.items():
        values = {
            key: value
            for key, value in vars(module).items()
            if not key.startswith("__") and not isinstance(value, (types.ModuleType, types.FunctionType, type))
        }
        try:
            copies[name] = _packed.Packed(values, shares_tensors=False)
        except Exception:
            copies[name] = {key: copy for key, value in values.items() if (copy := _copied(value)) is not None}
    return copies


def _copied(value):
    try:
        return _packed.Packed(value, shares_tensors=False)
    except Exception:
        return None


def _set_globals(module, copies):
    if isinstance(copies, dict):
        copies = {key: copy.unpack() for key, copy in copies.items()}
    elif copies is not None:
        copies = copies.unpack()
    vars(module).update(copies or {})


class Parent:
    def __init__(self, words, path, arguments):
        end = words.index("--") if "--" in words else len(words)
        self.words, self.own_words = words[:end], words[end:]
        self.path, self.arguments = path, arguments
        self.is_of_log = words[1] == "replay" and not any(word.endswith((".py", ".toml")) for word in words[2:end])
        self.only = int(os.environ.get("REHEARSE_WORLD", "0"))
        self.started = []
        self.worlds = 0
        self.runs_on = False  # as the script knows: a look ran the world, and nothing has been joined since

    def start(self, process):
        method = type(process)._start_method or multiprocessing.get_start_method()
        process._rehearse_job = _Job(process, method)
        process._rehearse_world = self.worlds + 1
        process._identity = (len(self.started) + 1,)
        self.started.append(process)

    def note_change(self):
        """The script changes a shared object."""
        if self.runs_on and not self.started:
            self.runs_on = False
            _say("the parent tells its processes something that real ones could still see, but here they have ended")

    def await_world(self, looks=False):
        """Runs the processes that have been started, if any. Ends the script if they fail.

        `looks`: the script looks into a shared object, and might go on while the processes run.
        """
        jobs = [process._rehearse_job for process in self.started]
        if not jobs:
            return
        self.started, self.runs_on = [], looks
        self.worlds += 1
        is_asked_for = self.only in (0, self.worlds)
        run = self._command if is_asked_for else self._alone
        code, contents = _in_child(lambda: (run(jobs), [each.contents() for each in _shared_objects.made]))
        if code != 0 and looks:
            _say("the parent waited for a queue meanwhile; what it would have told these ranks later is missing")
        if code != 0 or self.is_of_log and is_asked_for:
            raise SystemExit(code)
        if self.words[1] == "sweep" and is_asked_for:  # which of its runs goes on?
            code, contents = _in_child(lambda: (self._alone(jobs), [each.contents() for each in _shared_objects.made]))
        for each, own in zip(_shared_objects.made, contents):
            if own is not None:
                each.restore(own)

    def _command(self, jobs):
        words = list(self.words)
        if self.worlds > 1:
            words[0] += f" --world={self.worlds}"
        if not self.is_of_log:
            words = [word for word in words if not word.startswith("--ranks=")] + [f"--ranks={len(jobs)}"]
            if self.worlds > 1:
                words = self._with_own_folder(words)
        return _rehearse.run_command([*words, *self.own_words], lambda _: None, self._begin_with(jobs), _run.describe)

    def _with_own_folder(self, words):
        asked = [word for word in words if word.startswith("--output=")]
        name = os.path.splitext(os.path.basename(self.path))[0]
        folder = asked[-1].partition("=")[2] if asked else os.path.join("rehearse-out", name)
        return [word for word in words if word not in asked] + [f"--output={folder}-{self.worlds}"]

    def _alone(self, jobs):
        """Runs a world that the command is not about."""
        seeds = [word.partition("=")[2] for word in self.words if word.startswith("--seed=")]
        options = {"ranks": len(jobs), "seed": int(seeds[-1]) if seeds else 1}
        facts = _rehearse.run_world(self._begin_with(jobs), _run.describe, options)
        if facts["verdict"] != "OK":
            print(f"world {self.worlds} of the script failed:\n{facts['text']}", file=sys.stderr)
        return facts["exit_code"]

    def _begin_with(self, jobs):
        def begin(rank, size, *_):
            if size != len(jobs):
                raise RuntimeError(f"rehearse: the script starts {len(jobs)} processes, and the run is one of {size}")
            job = jobs[rank]
            _setup.begin_rank(rank, size, _rehearse.seed())
            own = _ranks.current()
            own.environ = dict(job.environ)
            sys.argv = [self.path, *self.arguments]
            main = _modules.new_main(self.path, "__mp_main__")

            def body():
                with _exit.as_of_process():
                    with contextlib.ExitStack() as quiet:
                        if job.method == "fork":
                            quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
                        _execute(self.path, main)
                    job.begin()
                    for name, copies in job.globals.items():
                        if name != "__main__":
                            __import__(name)
                        _set_globals(own.modules[name], copies)
                    job.run()
                    _shared_objects.at_end_of_rank()
                    _run.at_end_of_rank()

            return body

        return begin


def _say(text):
    print(f"rehearse: {text}", file=sys.stderr)


def _execute(path, module):
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), vars(module))


def _in_child(run):
    """Signals to end this process go to the child, which reports."""
    children = []

    def pass_on(number, _):
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}

    def restored():
        for number, handler in before.items():
            signal.signal(number, handler)
        return run()

    try:
        return _run.in_copy(restored, on_start=children.append)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _code_of(error):
    """Of a script that ends with this exception, which is shown."""
    if not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, error.__traceback__)
        return 1
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def run(words, path, arguments):
    """Runs the script, and the command on each world that it makes. Returns the exit code."""
    parent = Parent(words, path, arguments)
    own = _ranks.current()
    sizes = [word.partition("=")[2] for word in parent.words if word.startswith("--ranks=")]
    own.size = int(sizes[-1]) if sizes and sizes[-1].isdigit() else 2
    _multiprocessing.install(parent)
    _instead.load_data_inline_in_parent()
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(path)
    _modules.of_parent = True
    main = _modules.new_main(path)
    try:
        _execute(path, main)
        parent.await_world()
    except BaseException as error:
        code, is_told = _code_of(error), str(error).startswith("rehearse:")
    else:
        code, is_told = 0, False
    if parent.worlds > 0 or is_told:
        return code
    gpus = "" if _cuda.is_asked() else "; with --cuda, it finds GPUs"
    _say(
        "the script has started no processes, so no ranks have run; if it is to be started as a rank, add "
        f"--launcher=torchrun{gpus}"
    )
    return code or 1
