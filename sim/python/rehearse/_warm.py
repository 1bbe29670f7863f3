# SPDX-License-Identifier: BSD-3-Clause
"""Imports in the host what runs would import: each run has a copy of this process, and would begin anew."""

import ast
import importlib
import importlib.util
import sys

from . import _modules, _rebound

_WATCHED_IN_PART = {"torch", "numpy", "rehearse"} | sys.stdlib_module_names


def _names_in(text):
    """The modules that the script's import statements name, wherever they are."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module


def _is_of_library(name):
    """Whether all ranks share it. The user's own modules run in ranks only; a package without a file may be one."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and not _modules.is_users(spec)


def _libraries_in(path):
    """The modules of libraries that the script imports; none if it cannot be read, which the run will say."""
    try:
        with open(path, "rb") as file:
            names = sorted(set(_names_in(file.read())))
    except (OSError, SyntaxError, ValueError):
        return []
    return [name for name in names if _is_of_library(name)]


def import_libraries_of(path):
    names = _libraries_in(path)
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # the script may catch it, or never come there
            continue
    _rebound.watch(_packages(names))


def watch_libraries_of(function):
    """Like import_libraries_of() for the file of a function, which has imported them."""
    code = getattr(function, "__code__", None)
    _rebound.watch(_packages(_libraries_in(code.co_filename)) if code is not None else set())


def _packages(names):
    return {name.partition(".")[0] for name in names} - _WATCHED_IN_PART
