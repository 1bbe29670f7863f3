# SPDX-License-Identifier: BSD-3-Clause
"""Imports in the host what runs would import: each run has a copy of this process, and would begin anew."""

import ast
import importlib
import importlib.util

from . import _modules


def _names_in(text):
    """The modules that the script's import statements name, wherever they are."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module


def _is_of_library(name):
    """Whether all ranks share it. The user's own modules run in ranks only; a package without a file may be one."""
    spec = importlib.util.find_spec(name.partition(".")[0])
    return spec is not None and spec.origin is not None and not _modules.is_users(spec)


def import_libraries_of(path):
    try:
        with open(path, "rb") as file:
            names = sorted(set(_names_in(file.read())))
    except (OSError, SyntaxError, ValueError):
        return  # the run will say so
    for name in names:
        try:
            if _is_of_library(name):
                importlib.import_module(name)
        except Exception:  # the script may catch it, or never come there
            continue
