# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed on Rehearse's process groups: whatever backend a rank asks for, it gets the simulated one."""

import collections
import functools
import threading
import time

import torch.distributed as dist
from torch._C._distributed_c10d import Backend
from torch.distributed import device_mesh
from torch.distributed import distributed_c10d as c10d

import _rehearse

from . import _ranks, _shared_objects

_NAME = "rehearse"
# Names of backends that the simulation stands for. Others are the user's own, and stay.
_REAL = {"gloo", "nccl", "mpi", "ucc", "xccl", "undefined"}


def _milliseconds(timeout):
    return int(timeout.total_seconds() * 1000) if timeout else 0


def _own_timeout(timeout):
    """0: the script has not set one, so that of the world holds."""
    return 0 if timeout == c10d.default_pg_timeout else _milliseconds(timeout)


_SECONDS_UNTIL_OTHERS = 1.0  # of virtual time


class _ListsOfRanks:
    """What each rank has made a group of, by rank."""

    def __init__(self):
        self.by_rank, self.changed = {}, threading.Condition()

    def add(self, rank, ranks):
        with self.changed:
            self.by_rank[rank] = tuple(ranks)
            self.changed.notify_all()

    def await_all(self, size):
        with self.changed:
            self.changed.wait_for(lambda: len(self.by_rank) >= size, _SECONDS_UNTIL_OTHERS)


def _require_one_list_of_ranks(name, ranks, is_made_by_all):
    """Backends find their groups by name: other lists of ranks under one name would be torn groups.

    `is_made_by_all`: the ranks that are not in the group call this, too. If lists differ, a list that only the smaller
    part of the ranks has is the mistake.
    """
    own = _ranks.current()
    lists = _ranks.lists_of_groups.setdefault((own.worlds, name), _ListsOfRanks())
    lists.add(own.number, ranks)
    if is_made_by_all:
        lists.await_all(own.size)
    counts = collections.Counter(lists.by_rank.values())
    if len(counts) == 1:
        return
    if counts[tuple(ranks)] * 2 > len(lists.by_rank):
        time.sleep(_SECONDS_UNTIL_OTHERS)  # those with the mistake fail meanwhile
    known = next(each for each, _ in counts.most_common() if each != tuple(ranks))
    others = sorted(rank for rank, each in lists.by_rank.items() if each == known)
    raise RuntimeError(
        f"new_group() made group {name} of ranks {ranks} here, but of ranks {list(known)} on rank "
        f"{', '.join(map(str, others))}: all ranks must call new_group() for all groups, in one order and with the "
        "same ranks"
    )


def _compare_groups():
    """Also on ranks that are not in a group. Groups that only their members make have names that are no numbers."""
    of_torch = c10d._new_process_group_helper

    @functools.wraps(of_torch)
    def _new_process_group_helper(size, rank, ranks, backend, store, group_name, *arguments, **options):
        if _ranks.in_rank() and ranks and str(group_name).isdigit():
            _require_one_list_of_ranks(group_name, list(ranks), True)
        return of_torch(size, rank, ranks, backend, store, group_name, *arguments, **options)

    c10d._new_process_group_helper = _new_process_group_helper


def _require_own_number(own, options):
    """Other numbers would be sent to other ranks than the script means."""
    size_differs = not own.is_in_world and options.group_size != own.size
    if options.group_rank != own.number or size_differs:
        raise RuntimeError(
            f"rehearse: init_process_group(rank={options.group_rank}, world_size={options.group_size}) in process "
            f"{own.number} of {own.size}: ranks have the numbers of their processes, in the order of their start"
        )


def _make_backend(options, _backend_options=None):
    own, timeout = _ranks.current(), _own_timeout(options.timeout)
    ranks = list(options.global_ranks_in_group)
    own.worlds += not ranks
    if not ranks:
        _require_own_number(own, options)
    if not ranks and not own.is_in_world:
        own.is_in_world = True
        own.groups[options.group_id] = "world"
        return _rehearse.world_backend(timeout)
    name = own.groups[options.group_id] = f"group {options.group_id}"
    if ranks and not str(options.group_id).isdigit():
        _require_one_list_of_ranks(options.group_id, ranks, False)
    return _rehearse.new_backend(ranks or list(range(options.group_size)), name, timeout)


def _map_backends():
    of_config = c10d.BackendConfig.get_device_backend_map

    def get_device_backend_map(self):
        asked = of_config(self)
        if not _ranks.in_rank() or any(name not in _REAL for name in asked.values()):
            return asked
        if asked.get("cuda") == "nccl" and "cpu" not in asked:
            _ranks.current().uses_nccl = True
            _rehearse.use_nccl_of_rank()
        return {device: _NAME for device in asked if device in _devices} or {"cpu": _NAME}

    c10d.BackendConfig.get_device_backend_map = get_device_backend_map


class _TypesOfBackends(dict):
    """A rank's groups say that they are of a custom type, because no other accepts our backend."""

    def __getitem__(self, name):
        if not _ranks.in_rank() or name not in _REAL | {_NAME}:
            return super().__getitem__(name)
        return c10d.ProcessGroup.BackendType.CUSTOM

    def get(self, name, default=None):
        return self[name] if name in self else default


def _meet_at_world_store():
    of_torch = c10d.rendezvous

    def rendezvous(url, rank=-1, world_size=-1, **options):
        if not _ranks.in_rank():
            if _shared_objects.parent is not None and world_size != 1:
                raise RuntimeError(
                    "rehearse: init_process_group() in the process that starts the ranks: it cannot be one of them; "
                    "start a process for each rank, as mp.spawn does"
                )
            return of_torch(url, rank, world_size, **options)
        own = _ranks.current()
        return iter([(_rehearse.store(), own.number if rank < 0 else rank, own.size if world_size < 0 else world_size)])

    c10d.rendezvous = rendezvous


def _tell_meshes_apart():
    """Meshes of different ranks are equal, and caches that ranks share would hand one rank another's."""
    of_torch = device_mesh.DeviceMesh.__init__

    def __init__(self, *arguments, **options):
        of_torch(self, *arguments, **options)
        if _ranks.in_rank():
            self._thread_id = _ranks.current().number + 1

    device_mesh.DeviceMesh.__init__ = __init__


def _compare_no_calls_twice():
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL, torch compares the calls of ranks through Gloo. Ours are compared anyway."""
    of_torch = c10d._create_process_group_wrapper

    def _create_process_group_wrapper(wrapped_pg, *arguments, **options):
        return wrapped_pg if _ranks.in_rank() else of_torch(wrapped_pg, *arguments, **options)

    c10d._create_process_group_wrapper = _create_process_group_wrapper


def install(devices):
    """`devices`: the types of devices whose tensors the groups take."""
    global _devices
    _devices = devices
    dist.Backend.register_backend(_NAME, _make_backend, extended_api=True, devices=devices)
    _map_backends()
    c10d.Backend.backend_type_map = _TypesOfBackends(c10d.Backend.backend_type_map)
    _meet_at_world_store()
    _compare_no_calls_twice()
    _compare_groups()
    _tell_meshes_apart()
    if not hasattr(Backend, "_set_default_timeout"):
        Backend._set_default_timeout = lambda self, timeout: _rehearse.set_timeout(self, _milliseconds(timeout))
    if hasattr(c10d, "_FR_SELF_RECORDING_BACKENDS"):
        names = c10d._FR_SELF_RECORDING_BACKENDS
        c10d._FR_SELF_RECORDING_BACKENDS = type(names)([*names, _NAME])
