# SPDX-License-Identifier: BSD-3-Clause
"""Runs every rank of a distributed training job in this process: deterministic, in virtual time, with a report."""

from . import _launch

if not _launch.is_preloaded():
    if _launch.is_command():
        _launch.again()
    raise ImportError("rehearse: this process was not started by `python -m rehearse`")

import torch  # first, because the extension needs its libraries

import _rehearse
from _rehearse import compute, now, rank

from ._run import Failed, Report, run

__all__ = ["Failed", "Report", "compute", "now", "rank", "run"]
