# SPDX-License-Identifier: BSD-3-Clause
"""Starts Python again with Rehearse preloaded, because what ranks must not call (locks, clocks, sleeps) is replaced when
a process starts."""

import ctypes
import importlib.util
import os
import sys

# Not the real path: a build folder has links to the modules, and the library beside the links.
_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "librehearse.so")


def is_preloaded():
    return hasattr(ctypes.CDLL(None), "rehearse_is_preloaded")


def _library_folder_of_torch():
    spec = importlib.util.find_spec("torch")
    if spec is None:
        sys.exit(f"rehearse: {sys.executable} has no torch; install it there")
    return os.path.join(spec.submodule_search_locations[0], "lib")


def again():
    """Replaces this process by one with the same command line."""
    environ = dict(os.environ)
    folders = environ.get("LD_LIBRARY_PATH", "")
    environ["REHEARSE_LIBRARY_PATH"] = folders
    environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [_library_folder_of_torch(), folders]))
    environ["LD_PRELOAD"] = " ".join(filter(None, [_LIBRARY, environ.get("LD_PRELOAD")]))
    environ["PYTHONHASHSEED"] = "0"
    environ.setdefault("OMP_NUM_THREADS", "1")
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


def is_command():
    """Whether this is `python -m rehearse`."""
    words = sys.orig_argv[1:]
    return "-m" in words and words[words.index("-m") + 1 :][:1] == ["rehearse"]
