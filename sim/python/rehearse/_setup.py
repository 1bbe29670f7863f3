# SPDX-License-Identifier: BSD-3-Clause
"""Makes this process one whose Python code can run in ranks. Once, before the first world."""

import random
import struct
import sys
import threading

import torch
import torch._dynamo  # optimizers and process groups import it at their first use: here no rank is the first

import _rehearse

from . import _checks, _cuda, _distributed, _environ, _exit, _instead, _modules, _ranks, _settings, _source, _variables

_WORDS_OF_MERSENNE_TWISTER = 624


def _start_autograd():
    """Starts what the engine starts once, so that no rank is the first: its threads would be the rank's."""
    torch.ones(1, requires_grad=True).sum().backward()
    torch._C._ensureCUDADeviceGuardSet()


def _wrap_steps():
    """An optimizer wraps step() of its class when the first one is made: here no rank's is the first."""
    for value in vars(torch.optim).values():
        if isinstance(value, type) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer:
            value.__new__(value)._patch_step_function()


def _add_random():
    """The state of random's generator: its index and words follow the head of the object."""
    index_and_words = 4 * (1 + _WORDS_OF_MERSENNE_TWISTER)
    address = id(random._inst) + object.__basicsize__
    state = random.getstate()[1]
    import ctypes

    words = struct.unpack(f"{1 + _WORDS_OF_MERSENNE_TWISTER}I", ctypes.string_at(address, index_and_words))
    if words != (state[-1], *state[:-1]):
        raise RuntimeError("rehearse: the generator of `random` is not laid out as this version of Rehearse knows it")
    _rehearse.add_rank_bytes(address, index_and_words)


def _add_numpy():
    if "numpy" not in sys.modules:
        try:
            import numpy
        except ImportError:
            return
    import ctypes

    numpy = sys.modules["numpy"]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    generator = pointer(numpy.random.mtrand._rand._bit_generator.capsule, b"BitGenerator")
    state = ctypes.c_void_p.from_address(generator).value
    _rehearse.add_rank_bytes(state, 4 * (_WORDS_OF_MERSENNE_TWISTER + 1))


def _give_ranks_main_threads():
    of_host = threading.main_thread
    threading.main_thread = lambda: _ranks.current().main_thread or of_host()


_is_done = False


def once():
    global _is_done
    if _is_done:
        return
    _is_done = True
    _rehearse.set_up(
        list(_modules.LIBRARY_FOLDERS),
        torch.default_generator,
        _source.branches_around,
        _source.source_of,
        _instead.begin_repetition,
    )
    _start_autograd()
    _wrap_steps()
    torch._dynamo.trace_rules.clear_lru_cache()  # as init_process_group() does: that of a rank has nothing to free
    _distributed.install(_cuda.types_of_devices())
    if _cuda.is_asked():
        _cuda.install()
    _instead.install()
    _checks.install()
    _variables.install()
    _settings.install()
    _exit.install()
    _add_random()
    _add_numpy()
    _give_ranks_main_threads()
    _environ.install()
    _modules.install()


def begin_rank(number, size, seed):
    rank = _ranks.Rank(number, size, _environ.of_new_rank(number, size))
    _ranks.begin(rank)
    rank.main_thread = threading._MainThread()
    if hasattr(threading, "_shutdown_locks"):  # up to 3.12: the process would wait for it at its end
        threading._shutdown_locks.discard(rank.main_thread._tstate_lock)
    _rehearse.begin_variables()
    _rehearse.seed_random_bytes(number, seed)
    if _cuda.is_asked():
        _cuda.begin_rank()
    random.seed(f"{seed}/{number}")
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed((seed * 1_000_003 + number) % 2**32)
