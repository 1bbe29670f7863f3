# SPDX-License-Identifier: BSD-3-Clause
"""Starts Python again with Rehearse preloaded.

What ranks must not call (locks, clocks, sleeps) is replaced when a process starts.
"""

import ctypes
import importlib.metadata
import importlib.util
import os
import sys
import sysconfig


# Options that only Python code reads, and the variables in which it finds them.
_OPTIONS = {
    "--own": "REHEARSE_OWN",
    "--cuda": "REHEARSE_CUDA",
    "--launcher": "REHEARSE_LAUNCHER",
    "--world": "REHEARSE_WORLD",
}
# What starts the ranks. auto: the script itself if it calls what starts processes, otherwise torchrun.
LAUNCHERS = ("auto", "script", "torchrun", "launch", "slurm", "mpi")

HELP = """
options for Python scripts:
  --cuda[=device]          for scripts written for GPUs: "cuda" means the CPU, or a device with the CPU's memory
  --launcher=LAUNCHER      what starts the ranks: auto, script, torchrun, launch, slurm, mpi
  --world=N                of a script that starts its ranks: the command is about its N-th world
  --own=PACKAGE            each rank has its own copy of this package; may be repeated
"""


def is_preloaded():
    return hasattr(ctypes.CDLL(None), "rehearse_is_preloaded")


def _library():
    """It lies beside the extension module."""
    spec = importlib.util.find_spec("_rehearse")
    if spec is None:
        version = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"rehearse: there is no extension module _rehearse for Python {version} beside the package")
    return os.path.join(os.path.dirname(spec.origin), "librehearse.so")


def _library_folder_of_torch():
    spec = importlib.util.find_spec("torch")
    if spec is None:
        sys.exit(f"rehearse: {sys.executable} has no torch; install it there")
    return os.path.join(spec.submodule_search_locations[0], "lib")


def _take_options(words, environ):
    """Moves the options that only Python code reads from the command line to the environment."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word == "--cuda" or word.partition("=")[0] in _OPTIONS]
    for option in options:
        flag, _, value = option.partition("=")
        known = environ.get(_OPTIONS[flag]) if flag == "--own" else None
        environ[_OPTIONS[flag]] = f"{known},{value}" if known else value or "1"
    launcher = environ.get("REHEARSE_LAUNCHER", LAUNCHERS[0])
    if launcher not in LAUNCHERS:
        sys.exit(f"rehearse: --launcher={launcher}: there are {', '.join(LAUNCHERS)}")
    cuda = environ.get("REHEARSE_CUDA", "1")
    if cuda not in ("1", "device"):
        sys.exit(f"rehearse: --cuda={cuda}: there are --cuda and --cuda=device")
    if not environ.get("REHEARSE_WORLD", "1").isdigit():
        sys.exit(f"rehearse: --world={environ['REHEARSE_WORLD']}: which of the worlds that a script starts: 1, 2, ...")
    environ["REHEARSE_OPTIONS"] = " ".join(option for option in options if not option.startswith("--world="))
    return [word for word in words[:end] if word not in options] + words[end:]


def environ_of_preloaded(environ):
    """The environment of a process in which Rehearse is preloaded."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit("rehearse: ranks need the interpreter lock, and this Python is a free-threaded build: use another")
    require_torch()
    folders = environ.get("LD_LIBRARY_PATH", "")
    environ["REHEARSE_LIBRARY_PATH"] = folders
    environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [_library_folder_of_torch(), folders]))
    environ["LD_PRELOAD"] = " ".join(filter(None, [_library(), environ.get("LD_PRELOAD")]))
    environ["PYTHONHASHSEED"] = "0"
    environ.setdefault("OMP_NUM_THREADS", "1")
    environ["CUDA_VISIBLE_DEVICES"] = ""  # ranks have no devices yet
    return environ


def require_torch():
    """An installed package is built for one minor version of torch."""
    try:
        own, torch = importlib.metadata.version("rehearse"), importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:  # not installed: run from a build
        return
    minor = own.partition("+torch")[2]
    if minor and torch.split(".")[:2] != minor.split("."):
        sys.exit(f"rehearse {own} is built for torch {minor}, and torch {torch} is installed: install the other one")


def again():
    """Replaces this process by one with the same command line."""
    words = sys.orig_argv[1:]
    script = _index_of_script(words)
    if script is not None:
        words[script : script + 1] = ["-m", "rehearse"]
    environ = environ_of_preloaded(dict(os.environ))
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *_take_options(words, environ)], environ)


def _index_of_script(words):
    """Where the command line has the script `rehearse` of an installation; None: it has none."""
    own = os.path.join(sysconfig.get_path("scripts"), "rehearse")
    return next((i for i, word in enumerate(words) if os.path.abspath(word) == own), None)


def is_command():
    """Whether this is `python -m rehearse`, or the script `rehearse`."""
    words = sys.orig_argv[1:]
    is_module = "-m" in words and words[words.index("-m") + 1 :][:1] == ["rehearse"]
    return is_module or _index_of_script(words) is not None


def main():
    """The script `rehearse`. The import of the package has replaced its process already."""
    raise SystemExit("rehearse: call `python -m rehearse`")


def run(*_, **__):
    raise RuntimeError("rehearse.run: this process was not started by `python -m rehearse`, so it cannot run ranks")
