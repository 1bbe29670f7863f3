# SPDX-License-Identifier: BSD-3-Clause
"""The table of Python variables that are a rank's own, although all ranks share their modules.

A row is what holds the variable (a module, a class or a dictionary), its name, and what makes the value of a new rank
from that of the host; None: a new rank gets the host's.
"""

import builtins
import collections
import logging
import multiprocessing.context
import sys
import warnings

import torch
import torch._tensor_str
import torch.nn.modules.module as modules
from torch.distributed import distributed_c10d as c10d

import _rehearse


class _World(c10d._World):
    """A rank's groups, in the object. torch's class keeps them in variables of its module, seven for a switch."""

    __slots__ = ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "tags_to_pg", "pg_to_tag", "group_count")

    def __init__(self):
        super().__init__()
        for name in self.__slots__[:-1]:
            setattr(self, name, {})
        self.group_count = 0


def table():
    for name in ("_pg_map", "_pg_names", "_pg_group_ranks", "_pg_backend_config", "_tags_to_pg", "_pg_to_tag"):
        yield c10d, name, lambda _: {}
    yield c10d, "_group_count", lambda _: 0
    yield c10d, "_backend", _nothing
    yield c10d, "_default_pg_init_method", _nothing
    yield c10d, "_world", lambda _: _World()
    yield torch.nn.parallel.DistributedDataParallel, "_active_ddp_module", _nothing
    for name, value in vars(modules).items():
        if name.startswith("_global_") and isinstance(value, collections.OrderedDict):
            yield modules, name, lambda _: collections.OrderedDict()
    yield torch.cpu, "_current_stream", None
    for name in vars(torch._tensor_str.PRINT_OPTS):
        yield vars(torch._tensor_str.PRINT_OPTS), name, None
    yield warnings, "filters", list
    yield warnings, "_showwarnmsg_impl", None
    yield vars(logging.root), "handlers", list
    yield vars(logging.root), "level", None
    yield builtins, "print", None  # many scripts replace it on all ranks but one
    yield vars(multiprocessing.context._default_context), "_actual_context", None
    yield sys, "excepthook", None
    yield sys, "argv", list
    yield sys, "path", list
    yield sys, "stdout", None
    yield sys, "stderr", None


def _nothing(_):
    return None


_rows = []


def install():
    for holder, name, fresh in table():
        dictionary = holder if isinstance(holder, dict) else vars(holder)
        if name not in dictionary:
            continue
        if isinstance(holder, type):
            _rehearse.add_class_variable(holder, name, fresh)
        else:
            _rehearse.add_variable(dictionary, name, fresh)
        _rows.append((holder if isinstance(holder, type) else dictionary, name))


def rows():
    """What holds each variable, and its name."""
    return _rows
