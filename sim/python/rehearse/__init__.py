# SPDX-License-Identifier: BSD-3-Clause
"""Runs every rank of a distributed training job in this process: deterministic, in virtual time, with a report."""

from . import _launch

if not _launch.is_preloaded() and _launch.is_command():
    _launch.again()

_launch.require_torch()

import torch  # first, because the extension needs its libraries

from ._api import (
    check_finite,
    check_gradients,
    check_replicas,
    check_saved,
    check_step,
    compute,
    expect,
    label,
    now,
    progress,
    rank,
    result,
    saved_record,
    scratch_folder,
    shared_folder,
)

if _launch.is_preloaded():
    from ._run import Failed, Report, run
else:
    from ._launch import run

__all__ = [name for name in dir() if not name.startswith("_") and name != "torch"]
