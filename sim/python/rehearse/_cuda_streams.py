# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events of --cuda: all work is done when its call returns, and an event has the rank's virtual time."""

import time

import torch

import _rehearse

from . import _ranks


class Stream:
    cuda_stream = stream_id = 0
    device_type = 1

    def __init__(self, device=None, priority=0, **_):
        self.device, self.priority, self.device_index = torch.device("cuda"), priority, _rehearse.current_cuda()
        self._before = None

    @staticmethod
    def priority_range():
        return 0, -5

    def synchronize(self):
        pass

    def query(self):
        return True

    def is_capturing(self):
        return False

    def wait_stream(self, stream):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        self._before, _ranks.current().stream = _ranks.current().stream, self
        return self

    def __exit__(self, *_):
        _ranks.current().stream = self._before
        return False


class Event:
    cuda_event = 0

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess:
            raise RuntimeError("rehearse --cuda: there are no events that processes share")
        self._is_timed, self._time = enable_timing, None

    def record(self, stream=None):
        self._time = time.perf_counter()

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        if not (self._is_timed and end._is_timed):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end._time - self._time) * 1e3


class StreamContext:
    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error):
        if self.stream is not None:
            self.stream.__exit__(*error)


class _Refused:
    def __init__(self, *_, **__):
        raise RuntimeError("rehearse --cuda: there are no CUDA graphs on the CPU; run the code without them")


def current(device=None):
    return _ranks.current().stream or _default


def _set_stream(stream):
    _ranks.current().stream = stream


def install():
    global _default
    _default = Stream()
    cuda = torch.cuda
    for module in (cuda, cuda.streams):
        module.Stream, module.Event, module.ExternalStream = Stream, Event, Stream
    cuda.current_stream = lambda device=None: current(device)
    cuda.default_stream = lambda device=None: _default
    cuda.set_stream = _set_stream
    cuda.StreamContext = StreamContext
    cuda.stream = StreamContext
    cuda.CUDAGraph = cuda.graph = cuda.make_graphed_callables = _Refused
