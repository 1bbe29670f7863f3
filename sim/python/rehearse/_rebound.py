# SPDX-License-Identifier: BSD-3-Clause
"""Finds variables of torch's modules that a run has bound anew although they are not a rank's own.

For the tests of the table of variables: the variable REHEARSE_REBOUND names a file to which each run adds them.
"""

import os
import sys

from . import _variables

# Variables that ranks may share, with the reason.
_SHARED = {
    "torch._subclasses.meta_utils.DESCRIBER_NEXT_ID": "counts descriptions of tensors; nobody compares the numbers",
}

_before = {}


def note():
    """Call it before a run."""
    if "REHEARSE_REBOUND" in os.environ:
        _before.update((name, dict(vars(module))) for name, module in _modules_of_torch())


def tell():
    """Call it after a run."""
    if not _before:
        return
    known = {(id(holder), name) for holder, name, _ in _variables.rows()}
    with open(os.environ["REHEARSE_REBOUND"], "a") as file:
        for module_name, module in _modules_of_torch():
            before = _before.get(module_name, {})
            for name, value in list(vars(module).items()):
                is_new = name in before and before[name] is not value
                full_name = f"{module_name}.{name}"
                if is_new and (id(vars(module)), name) not in known and full_name not in _SHARED:
                    file.write(f"{full_name}\n")


def _modules_of_torch():
    return [(name, module) for name, module in list(sys.modules.items()) if name.split(".")[0] == "torch" and module]
