# SPDX-License-Identifier: BSD-3-Clause
"""What a rank has of its own beside its Python variables."""

import _rehearse


class Rank:
    def __init__(self, number, size, environ):
        self.number, self.size, self.environ = number, size, environ
        self.modules = {}  # the user's own, by name
        self.main_thread = None  # its threading.Thread
        self.settings = {}  # numbers of threads, and handlers by their signals
        self.loggers = {}  # its own, by name
        self.at_exit = []  # functions with their arguments
        self.models = []  # its DistributedDataParallels: weak references and names
        self.steps = []  # of each optimizer: how many, and how many with gradients
        self.groups = {}  # names in reports, by c10d's names
        self.is_in_world = False  # it has made the default process group
        self.uses_nccl = False  # its default process group was to be one of NCCL
        self.worlds = 0  # how many default process groups it has made
        self.stream = None  # of CUDA: the current one, if not the default (--cuda)


_ranks = {}
lists_of_groups = {}  # by the world's number and the group's name: the list of ranks of each rank that made it
_host = Rank(-1, 0, None)


def current():
    """The calling rank, or what stands for code outside of ranks."""
    number = _rehearse.rank()
    return _host if number < 0 else _ranks[number]


def in_rank():
    return _rehearse.rank() >= 0


def begin(rank):
    _ranks[rank.number] = rank
