# SPDX-License-Identifier: BSD-3-Clause
"""Settings of a process that a rank has of its own: folder, default type and flags of torch, handlers, loggers."""

import collections.abc
import functools
import logging
import os
import signal
import sys

import torch

import _rehearse

from . import _ranks

# By the names of torch._C's functions: what gives the arguments that set what lives now.
_OF_TORCH = {
    "_set_default_dtype": torch.get_default_dtype,
    "_set_float32_matmul_precision": torch.get_float32_matmul_precision,
    "_set_deterministic_algorithms": torch._C._get_deterministic_algorithms,
    "_set_deterministic_fill_uninitialized_memory": torch._C._get_deterministic_fill_uninitialized_memory,
    "_set_cudnn_benchmark": torch._C._get_cudnn_benchmark,
    "_set_cudnn_deterministic": torch._C._get_cudnn_deterministic,
    "_set_cudnn_enabled": torch._C._get_cudnn_enabled,
    "_set_cudnn_allow_tf32": torch._C._get_cudnn_allow_tf32,
    "_set_cublas_allow_tf32": torch._C._get_cublas_allow_tf32,
    "_set_mkldnn_enabled": torch._C._get_mkldnn_enabled,
    "_set_sdp_use_flash": torch._C._get_flash_sdp_enabled,
    "_set_sdp_use_math": torch._C._get_math_sdp_enabled,
    "_set_sdp_use_mem_efficient": torch._C._get_mem_efficient_sdp_enabled,
    "_set_warnAlways": torch._C._get_warnAlways,
    "set_anomaly_enabled": torch.is_anomaly_enabled,
}


# Such as torch.backends.cudnn.benchmark.
_PROPERTIES = [
    value
    for name, module in sorted(sys.modules.items())
    if name.startswith("torch.backends.")
    for value in vars(type(module)).values()
    if isinstance(value, torch.backends.ContextProp)
]


def _exchange(holder, name, of_host, value_after=None):
    """Each rank has its own of what holder.name(value) sets. `value_after`: gives it after a call."""
    original = getattr(holder, name)
    setting = _rehearse.add_setting(original, ((of_host,), {}))

    @functools.wraps(original)
    def function(*arguments, **options):
        result = original(*arguments, **options)
        _rehearse.note_setting(setting, ((value_after(),), {}) if value_after else (arguments, options))
        return result

    setattr(holder, name, function)
    if vars(torch).get(name) is original:
        setattr(torch, name, function)
    for properties in _PROPERTIES:
        if properties.setter is original:
            properties.setter = function
    return setting


def _exchange_folder():
    setting = _exchange(os, "chdir", os.getcwd(), os.getcwd)
    of_file = os.fchdir

    @functools.wraps(of_file)
    def fchdir(file):
        of_file(file)
        _rehearse.note_setting(setting, ((os.getcwd(),), {}))

    os.fchdir = fchdir


def _keep_numbers_of_threads():
    """All ranks compute on one thread, so what a rank asks for is kept for it alone."""
    for name in ("num_threads", "num_interop_threads"):
        of_torch = getattr(torch, f"get_{name}")

        def get(_name=name, _of_torch=of_torch):
            return _ranks.current().settings.get(_name, _of_torch())

        def set_(number, _name=name):
            _ranks.current().settings[_name] = number

        for module in (torch, torch._C):
            setattr(module, f"get_{name}", functools.wraps(of_torch)(get))
            setattr(module, f"set_{name}", functools.wraps(getattr(torch, f"set_{name}"))(set_))


def _own_handlers():
    """One handler in the process calls that of the rank whose code the signal interrupts."""
    set_real, get_real = signal.signal, signal.getsignal

    def handle(number, frame):
        handler = signal.getsignal(number)
        if callable(handler):
            return handler(number, frame)
        if handler == signal.SIG_DFL:
            raise SystemExit(128 + number)

    @functools.wraps(set_real)
    def set_handler(number, handler):
        if not _ranks.in_rank():
            return set_real(number, handler)
        before = signal.getsignal(number)
        if get_real(number) is not handle:
            set_real(number, handle)
        _ranks.current().settings[signal.Signals(number)] = handler
        return before

    @functools.wraps(get_real)
    def get_handler(number):
        own = _ranks.current().settings if _ranks.in_rank() else {}
        real = get_real(number)
        return own.get(number, signal.SIG_DFL if real is handle else real)

    signal.signal, signal.getsignal = set_handler, get_handler


class _Loggers(collections.abc.MutableMapping):
    """The loggers of libraries, which all ranks share, and those that the calling rank has made."""

    def __init__(self, of_libraries):
        self._of_libraries = of_libraries

    def _own(self):
        return _ranks.current().loggers

    def __getitem__(self, name):
        own = self._own()
        return own[name] if name in own else self._of_libraries[name]

    def __setitem__(self, name, logger):
        self._own()[name] = logger

    def __delitem__(self, name):
        del self._own()[name]

    def __iter__(self):
        return iter({**self._of_libraries, **self._own()})

    def __len__(self):
        return len({**self._of_libraries, **self._own()})

    def copy(self):
        return dict(self)


def install():
    logging.root.manager.loggerDict = _Loggers(logging.root.manager.loggerDict)
    for name, get in _OF_TORCH.items():
        _exchange(torch._C, name, get())
    _exchange_folder()
    _exchange(os, "umask", _umask())
    _keep_numbers_of_threads()
    _own_handlers()


def _umask():
    now = os.umask(0)
    os.umask(now)
    return now
