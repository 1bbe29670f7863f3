# SPDX-License-Identifier: BSD-3-Clause
"""What processes of multiprocessing share: queues, pipes, locks, a manager's dictionaries. Here ranks share them.

They are objects of one process, but hand on copies of values, as pipes between processes do. Their locks and waits are
those of threads, which take virtual time in ranks.
"""

import collections.abc
import queue
import threading
import types

import _rehearse

from . import _ranks
from ._packed import Packed

made = []  # by the parent: a world's end brings their contents back to it
parent = None


class Shared:
    """Copies of it are itself."""

    stays_itself = True

    def __init__(self):
        if not _ranks.in_rank():
            made.append(self)

    def contents(self):
        """What a process can send to another; None: nothing."""
        return None

    def _settle(self):
        """Before the parent looks into it."""
        if not _ranks.in_rank():
            parent.await_world(looks=True)

    def _tell(self):
        """Before the parent changes it."""
        if not _ranks.in_rank():
            parent.note_change()


def _nothing(*_, **__):
    return None


class Queue(Shared):
    def __init__(self, maxsize=0, **_):
        super().__init__()
        self._values = queue.Queue(maxsize)

    def put(self, value, block=True, timeout=None):
        self._tell()
        self._values.put(Packed(value), block, timeout)

    def get(self, block=True, timeout=None):
        if self._values.empty():
            self._settle()
        if not _ranks.in_rank() and self._values.empty():
            if not block or timeout is not None:
                raise queue.Empty
            raise RuntimeError("rehearse: the parent waits for ever: its queue is empty, and its processes have ended")
        return self._values.get(block, timeout).unpack()

    def put_nowait(self, value):
        self.put(value, False)

    def get_nowait(self):
        return self.get(False)

    def empty(self):
        self._settle()
        return self._values.empty()

    def full(self):
        return self._values.full()

    def qsize(self):
        self._settle()
        return self._values.qsize()

    def join(self):
        self._settle()
        self._values.join()

    def task_done(self):
        self._values.task_done()

    close = join_thread = cancel_join_thread = shutdown = _nothing

    def unread_of(self, rank):
        return [value for value in list(self._values.queue) if value.sender == rank]

    def contents(self):
        return [value.unpack() for value in self._values.queue]

    def restore(self, contents):
        self._values.queue.clear()
        self._values.queue.extend(map(Packed, contents))


class Connection(Shared):
    """One end of a pipe."""

    def __init__(self, receives, sends):
        super().__init__()
        self._receives, self._sends = receives, sends

    def send(self, value):
        self._sends.put(value)

    def recv(self):
        return self._receives.get()

    def poll(self, timeout=0.0):
        return not self._receives.empty()

    send_bytes, recv_bytes, close = send, recv, _nothing


def pipe(duplex=True):
    there, back = Queue(), Queue()
    return Connection(back, there), Connection(there, back)


class SharedDict(Shared, collections.abc.MutableMapping):
    def __init__(self, *values, **more):
        super().__init__()
        self._values = {key: Packed(value) for key, value in dict(*values, **more).items()}

    def __getitem__(self, key):
        self._settle()
        return self._values[key].unpack()

    def __setitem__(self, key, value):
        self._values[key] = Packed(value)

    def __delitem__(self, key):
        del self._values[key]

    def __iter__(self):
        self._settle()
        return iter(list(self._values))

    def __len__(self):
        self._settle()
        return len(self._values)

    def __repr__(self):
        return repr(self.copy())

    def copy(self):
        return dict(self.items())

    contents = copy

    def restore(self, contents):
        self._values = {key: Packed(value) for key, value in contents.items()}


class SharedList(Shared, collections.abc.MutableSequence):
    def __init__(self, values=()):
        super().__init__()
        self._values = [Packed(value) for value in values]

    def __getitem__(self, index):
        self._settle()
        if isinstance(index, slice):
            return [value.unpack() for value in self._values[index]]
        return self._values[index].unpack()

    def __setitem__(self, index, value):
        self._values[index] = [Packed(each) for each in value] if isinstance(index, slice) else Packed(value)

    def __delitem__(self, index):
        del self._values[index]

    def __len__(self):
        self._settle()
        return len(self._values)

    def __repr__(self):
        return repr(list(self))

    def insert(self, index, value):
        self._values.insert(index, Packed(value))

    def sort(self, **options):
        self[:] = sorted(self, **options)

    def contents(self):
        return list(self)

    def restore(self, contents):
        self._values = [Packed(value) for value in contents]


class Namespace(Shared):
    def __init__(self, **values):
        super().__init__()
        self.__dict__["values"] = SharedDict(values)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self.__dict__["values"][name] = value


class _Locked(Shared):
    """What has a lock of its own: get_lock(), `with`."""

    def __init__(self):
        super().__init__()
        self._lock = threading.RLock()

    def get_lock(self):
        return self._lock

    def get_obj(self):
        return self

    def __enter__(self):
        return self._lock.__enter__()

    def __exit__(self, *error):
        return self._lock.__exit__(*error)


class Value(_Locked):
    def __init__(self, kind, value=0, lock=True):
        super().__init__()
        self._value = value

    @property
    def value(self):
        self._settle()
        return self._value

    @value.setter
    def value(self, value):
        self._tell()
        self._value = value

    def contents(self):
        return self._value

    def restore(self, contents):
        self._value = contents


class Array(_Locked, SharedList):
    def __init__(self, kind, values, lock=True):
        _Locked.__init__(self)
        self._values = [Packed(value) for value in ([0] * values if isinstance(values, int) else values)]


def _of_threads(name):
    """A class of threading as one that ranks share."""
    of_threads = getattr(threading, name)

    class OfThreads(Shared):
        def __init__(self, *arguments, **options):
            super().__init__()
            arguments = [each._inner if isinstance(each, Shared) else each for each in arguments]
            self._inner = of_threads(*arguments, **options)

        def __getattr__(self, attribute):
            if attribute.startswith("__") or attribute == "_inner":
                raise AttributeError(attribute)
            return getattr(self._inner, attribute)

        def __enter__(self):
            return self._inner.__enter__()

        def __exit__(self, *error):
            return self._inner.__exit__(*error)

    OfThreads.__name__ = OfThreads.__qualname__ = name
    return OfThreads


OF_THREADS = {
    name: _of_threads(name) for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Barrier")
}


class Event(_of_threads("Event")):
    def set(self):
        self._tell()
        self._inner.set()

    def is_set(self):
        self._settle()
        return self._inner.is_set()

    def contents(self):
        return self._inner.is_set()

    def restore(self, contents):
        self._inner.set() if contents else self._inner.clear()


class Manager(types.SimpleNamespace):
    """multiprocessing.Manager(), without its server."""

    def __init__(self, *_, **__):
        super().__init__(
            dict=SharedDict, list=SharedList, Namespace=Namespace, Queue=Queue, JoinableQueue=Queue, Value=Value,
            Array=Array, Event=Event, start=_nothing, connect=_nothing, shutdown=_nothing, **OF_THREADS,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


# By the names in multiprocessing and its contexts.
MAKERS = {
    "Queue": Queue, "JoinableQueue": Queue, "SimpleQueue": Queue, "Pipe": pipe, "Manager": Manager, "Value": Value,
    "Array": Array, "RawValue": Value, "RawArray": Array, "Event": Event, **OF_THREADS,
}  # fmt: skip

_BYTES_OF_PIPE = 64 << 10


def at_end_of_rank():
    """What processes cannot do with what this one leaves in queues."""
    for shared in made:
        unread = shared.unread_of(_ranks.current().number) if isinstance(shared, Queue) else []
        if any(value.has_tensors() for value in unread):
            _rehearse.note_habit(
                "ended while tensors were unread that it had put into a queue: once a process has ended, nobody can "
                "open its tensors; let it wait until they are received, or send numpy arrays"
            )
        if sum(value.size() for value in unread) > _BYTES_OF_PIPE and not parent.runs_on:
            _rehearse.note_habit(
                "left more than 64 KiB unread in a queue, and its parent joins it before it reads: a process would "
                "wait for ever, as a pipe takes no more; read the queue before the join"
            )
