# SPDX-License-Identifier: BSD-3-Clause
"""Starts Python again with Rehearse preloaded.

What ranks must not call (locks, clocks, sleeps) is replaced when a process starts.
"""

import ctypes
import importlib.util
import os
import sys

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


def again():
    """Replaces this process by one with the same command line."""
    environ = dict(os.environ)
    folders = environ.get("LD_LIBRARY_PATH", "")
    environ["REHEARSE_LIBRARY_PATH"] = folders
    environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [_library_folder_of_torch(), folders]))
    environ["LD_PRELOAD"] = " ".join(filter(None, [_library(), environ.get("LD_PRELOAD")]))
    environ["PYTHONHASHSEED"] = "0"
    environ.setdefault("OMP_NUM_THREADS", "1")
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


def is_command():
    """Whether this is `python -m rehearse`."""
    words = sys.orig_argv[1:]
    return "-m" in words and words[words.index("-m") + 1 :][:1] == ["rehearse"]
