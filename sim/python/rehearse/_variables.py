# SPDX-License-Identifier: BSD-3-Clause
"""The table of Python variables that are a rank's own, although all ranks share their modules.

A row is what holds the variable (a module, a class or a dictionary), its name, and what makes the value of a new rank.
"""

import collections
import logging
import sys
import warnings

import torch
import torch.nn.modules.module as modules
from torch.distributed import distributed_c10d as c10d

import _rehearse


def _copy_of(make, value):
    return lambda: make(value)


def _always(value):
    return lambda: value


def table():
    for name in ("_pg_map", "_pg_names", "_pg_group_ranks", "_pg_backend_config", "_tags_to_pg", "_pg_to_tag"):
        yield c10d, name, dict
    yield c10d, "_group_count", int
    yield c10d, "_backend", _always(None)
    yield c10d, "_default_pg_init_method", _always(None)
    yield c10d, "_world", c10d._World
    yield torch.nn.parallel.DistributedDataParallel, "_active_ddp_module", _always(None)
    for name, value in vars(modules).items():
        if name.startswith("_global_") and isinstance(value, collections.OrderedDict):
            yield modules, name, collections.OrderedDict
    yield torch.cpu, "_current_stream", _always(torch.cpu._current_stream)
    yield warnings, "filters", _copy_of(list, list(warnings.filters))
    yield warnings, "_showwarnmsg_impl", _always(warnings._showwarnmsg_impl)
    yield vars(logging.root), "handlers", _copy_of(list, list(logging.root.handlers))
    yield vars(logging.root), "level", _always(logging.root.level)
    yield sys, "excepthook", _always(sys.__excepthook__)
    yield sys, "argv", _copy_of(list, list(sys.argv))
    yield sys, "stdout", _always(sys.stdout)
    yield sys, "stderr", _always(sys.stderr)


_rows = []


def install():
    for holder, name, make in table():
        if isinstance(holder, type):
            if name in vars(holder):
                _rehearse.add_class_variable(holder, name)
                _rows.append((holder, name, make))
            continue
        dictionary = holder if isinstance(holder, dict) else vars(holder)
        if name in dictionary:
            _rehearse.add_variable(dictionary, name)
            _rows.append((dictionary, name, make))


def rows():
    """What holds each variable, its name, and what makes the value of a new rank."""
    return _rows


def begin_rank():
    """Gives the calling rank its values."""
    for holder, name, make in _rows:
        if isinstance(holder, type):
            setattr(holder, name, make())
        else:
            holder[name] = make()
