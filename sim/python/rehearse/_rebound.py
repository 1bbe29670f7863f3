# SPDX-License-Identifier: BSD-3-Clause
"""Finds variables of packages that a run has bound anew although all ranks share them.

Watches the packages that a script names in its import statements, and what people replace in torch. For the tests of
the table of variables, REHEARSE_REBOUND=all watches all modules of torch.
"""

import os
import sys

import torch
import torch.nn.functional
from torch.distributed import distributed_c10d

import _rehearse

from . import _ranks, _variables

# Variables that ranks may share, with the reason.
_SHARED = {
    "torch._subclasses.meta_utils.DESCRIBER_NEXT_ID": "counts descriptions of tensors; nobody compares the numbers",
    "torch._custom_class_base._FakeScriptObject_cls": "a class of torch's, looked up when it is first needed",
}
_OF_TORCH = (torch, torch.nn.functional, distributed_c10d)
_WITH_CLASSES_OF_TORCH = (torch.nn, torch.optim)
_NAMES_SHOWN = 4

_before = []  # names, what has the variables (a module or a class), and a copy of them
_ended = 0


def _watch(name, holder):
    _before.append((name, holder, dict(vars(holder))))


def _watch_with_classes(module):
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__.startswith(module.__name__):
            _watch(f"{value.__module__}.{value.__qualname__}", value)


def watch(packages):
    """Call it before a run, with the names of the packages that its script imports."""
    everything = "REHEARSE_REBOUND" in os.environ
    _before.clear()
    for module in _OF_TORCH:
        _watch(module.__name__, module)
    for module in _WITH_CLASSES_OF_TORCH:
        _watch_with_classes(module)
    _watch("torch.Tensor", torch.Tensor)
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if module is None or not (package in packages or everything and package == "torch"):
            continue
        _watch(name, module)
        if package != "torch":
            _watch_with_classes(module)


def _bound_anew():
    known = {f"{_name_of(holder)}.{name}" for holder, name in _variables.rows()} | _SHARED.keys()
    return sorted(set(_rehearse.bound_anew(_before)) - known)


def _name_of(holder):
    return holder.get("__name__", "") if isinstance(holder, dict) else f"{holder.__module__}.{holder.__qualname__}"


def at_end_of_rank():
    """Call it when a rank's code has returned. The last rank tells what the run has bound anew."""
    global _ended
    _ended += 1
    if _ended < _ranks.current().size:
        return
    names = _bound_anew()
    if not names:
        return
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    _rehearse.note_remark(
        f"ranks share what this run has changed in packages: {', '.join(names[:_NAMES_SHOWN])}{more}; "
        "in a real job each process has its own (--own=PACKAGE gives each rank its own)"
    )
