# SPDX-License-Identifier: BSD-3-Clause
"""os.environ: each rank has its own, which begins as the host's with the variables of torchrun."""

import os

from . import _ranks

# Only Python code reads these, so the process's environment, which ranks share, does without them.
_OF_LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")

_of_host = None


class RankEnviron(os._Environ):
    @property
    def _data(self):
        own = _ranks.current().environ
        return _of_host if own is None else own

    def __setitem__(self, key, value):
        if not _ranks.in_rank() or key not in _OF_LAUNCHERS:
            return super().__setitem__(key, value)
        self._data[self.encodekey(key)] = self.encodevalue(value)

    def __delitem__(self, key):
        if not _ranks.in_rank():
            return super().__delitem__(key)
        try:
            del self._data[self.encodekey(key)]
        except KeyError:
            raise KeyError(key) from None


def install():
    global _of_host
    _of_host = os.environ._data
    del os.environ.__dict__["_data"]
    os.environ.__class__ = RankEnviron


def of_new_rank(rank, size):
    values = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "GROUP_RANK": 0,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": 29500,
    }
    environ = dict(_of_host)
    environ.update((name.encode(), str(value).encode()) for name, value in values.items())
    return environ
