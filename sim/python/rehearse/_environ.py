# SPDX-License-Identifier: BSD-3-Clause
"""os.environ: each rank has its own, which begins as the host's with the variables of what launched the ranks."""

import os

from . import _ranks

_ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def _of_torchrun(rank, size):
    own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "GROUP_RANK": 0}
    group = {"GROUP_WORLD_SIZE": 1, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": size, "ROLE_NAME": "default"}
    agent = {"RUN_ID": "none", "RESTART_COUNT": 0, "MAX_RESTARTS": 0, "USE_AGENT_STORE": "True"}
    return {**own, **group, **{f"TORCHELASTIC_{name}": value for name, value in agent.items()}, **_ADDRESS}


def _of_slurm(rank, size):
    node = {"SLURM_NNODES": 1, "SLURM_JOB_NUM_NODES": 1, "SLURM_NODEID": 0, "SLURM_JOB_NODELIST": "localhost"}
    own = {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NTASKS": size, "SLURM_NPROCS": size}
    return {**own, "SLURM_NTASKS_PER_NODE": size, "SLURM_JOB_ID": 1, "SLURM_NODELIST": "localhost", **node}


def _of_mpi(rank, size):
    names = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank, "LOCAL_SIZE": size, "NODE_RANK": 0}
    return {f"OMPI_COMM_WORLD_{name}": value for name, value in names.items()}


# What a rank finds in its environment, by --launcher.
_BY_LAUNCHER = {b"slurm": _of_slurm, b"mpi": _of_mpi}

# Only Python code reads these, so the process's environment, which ranks share, does without them.
_OF_LAUNCHERS = {name for of in (_of_torchrun, _of_slurm, _of_mpi) for name in of(0, 1)}

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
    values = _BY_LAUNCHER.get(_of_host.get(b"REHEARSE_LAUNCHER"), _of_torchrun)(rank, size)
    environ = dict(_of_host)
    environ.update((name.encode(), str(value).encode()) for name, value in values.items())
    return environ
