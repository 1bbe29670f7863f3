# SPDX-License-Identifier: BSD-3-Clause
"""What belongs to a process belongs to a rank."""

import contextvars
import functools
import gc
import io
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref

import pytest
import torch
import torch.distributed as dist
from ranks import RANKS, gathered, on_ranks, report_of

_of_thread = threading.local()
_of_context = contextvars.ContextVar("of_context", default=-1)


def test_thread_locals_and_contexts():
    def body(rank):
        _of_thread.value = rank
        _of_context.set(rank)
        dist.barrier()
        assert (_of_thread.value, _of_context.get()) == (rank, rank)
        in_thread = []
        thread = threading.Thread(target=lambda: in_thread.append(hasattr(_of_thread, "value")))
        thread.start()
        thread.join()
        assert in_thread == [False]

        def inner():
            _of_context.set(10 * rank)
            dist.barrier()
            return _of_context.get()

        assert contextvars.copy_context().run(inner) == 10 * rank
        assert _of_context.get() == rank

    on_ranks(body)


def test_main_threads_and_their_ids():
    def body(rank):
        assert threading.main_thread() is threading.current_thread()
        assert threading.current_thread().name == "MainThread"
        assert len(set(gathered(threading.get_ident()))) == RANKS

    on_ranks(body)


def test_generators_of_torch():
    def body(rank):
        torch.manual_seed(rank)
        dist.barrier()
        own = torch.Generator().manual_seed(rank)
        assert torch.rand(1).item() == torch.rand(1, generator=own).item()
        assert torch.default_generator.initial_seed() == rank
        state = torch.get_rng_state()
        drawn = torch.rand(3)
        dist.barrier()
        torch.set_rng_state(state)
        assert torch.equal(drawn, torch.rand(3))
        with torch.random.fork_rng():
            torch.manual_seed(5)
            dist.barrier()
        assert torch.equal(torch.rand(1), torch.rand(1, generator=own)) is False  # it drew three numbers before

    on_ranks(body)


def test_generators_of_python_and_numpy():
    import numpy

    def body(rank):
        random.seed(rank)
        numpy.random.seed(rank)
        dist.barrier()
        assert random.random() == random.Random(rank).random()
        assert numpy.random.rand() == numpy.random.RandomState(rank).rand()
        assert len(set(gathered(random.random()))) == RANKS

    on_ranks(body)


def test_ranks_start_with_different_seeds_of_their_own():
    def body(rank):
        assert len(set(gathered(random.random()))) == RANKS

    on_ranks(body)


def test_random_bytes_follow_from_the_seed():
    drawn = []
    for seed in (1, 1, 2):

        def body(rank):
            import uuid

            every = gathered((os.urandom(8), uuid.uuid4().hex))
            assert len(set(every)) == RANKS
            if rank == 0:
                assert False, f"drawn: {every[0][0].hex()} {every[0][1]}"

        drawn.append(report_of(body, ranks=RANKS, seed=seed).headline)
    assert drawn[0] == drawn[1] != drawn[2]


def test_environment():
    def body(rank):
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        assert [int(os.environ[name]) for name in names] == [rank, rank, RANKS, RANKS]
        os.environ["OWN"] = str(rank)
        dist.barrier()
        assert os.environ["OWN"] == str(rank) and "OWN" in dict(os.environ)
        del os.environ["OWN"]
        assert os.getenv("OWN") is None

    on_ranks(body)


def test_gradient_mode_and_autocast():
    def body(rank):
        with torch.set_grad_enabled(rank != 0):
            dist.barrier()
            assert torch.is_grad_enabled() == (rank != 0)
        with torch.autocast("cpu", enabled=rank == 1):
            dist.barrier()
            assert torch.is_autocast_enabled("cpu") == (rank == 1)

    on_ranks(body)


def test_warnings_and_logging():
    def body(rank):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dist.barrier()
            warnings.warn("once")
            dist.barrier()
        assert len(caught) == 1
        stream = io.StringIO()
        logging.basicConfig(stream=stream, level=logging.INFO, format=f"[{rank}] %(message)s", force=True)
        dist.barrier()
        logging.info("ready")
        assert stream.getvalue() == f"[{rank}] ready\n"

    on_ranks(body)


def test_module_hooks():
    def body(rank):
        called = []
        if rank == 1:
            torch.nn.modules.module.register_module_forward_hook(lambda *_: called.append(rank))
        dist.barrier()
        torch.nn.Linear(2, 2)(torch.ones(2))
        assert called == ([1] if rank == 1 else [])

    on_ranks(body)


def test_exceptions_across_switches():
    def body(rank):
        try:
            raise ValueError(rank)
        except ValueError as outer:
            dist.barrier()
            try:
                raise KeyError(rank)
            except KeyError as inner:
                dist.barrier()
                assert sys.exc_info()[1] is inner and inner.__context__ is outer
            assert sys.exc_info()[1] is outer and outer.args == (rank,)
        assert sys.exc_info()[1] is None

    on_ranks(body)


def test_generators_that_suspend():
    def body(rank):
        def steps():
            for step in range(3):
                dist.barrier()
                yield step

        assert list(steps()) == [0, 1, 2]

    on_ranks(body)


def test_recursion_limits():
    def body(rank):
        def depth(n):
            return 0 if n == 0 else 1 + depth(n - 1)

        assert depth(900) == 900
        try:
            depth(10**6)
            raise AssertionError("there is a limit")
        except RecursionError:
            pass
        dist.barrier()

    on_ranks(body)


def test_tracing():
    def body(rank):
        events = []
        if rank == 1:
            sys.settrace(lambda frame, event, argument: events.append(event))
        dist.barrier()
        dist.barrier()
        assert (sys.gettrace() is None) == (rank != 1)
        sys.settrace(None)
        assert bool(events) == (rank == 1)

    on_ranks(body)


def test_garbage_and_finalizers():
    class Thing:
        pass

    def body(rank):
        log = []
        thing = Thing()
        thing.itself = thing
        weakref.finalize(thing, log.append, rank)
        del thing
        gc.collect()
        dist.barrier()
        assert log == [rank]

    on_ranks(body)


def test_caches_that_suspend():
    def body(rank):
        @functools.lru_cache
        def double(value):
            dist.barrier()
            return 2 * value

        assert (double(rank), double(rank)) == (2 * rank, 2 * rank)

    on_ranks(body)


def test_signals_to_a_rank():
    def body(rank):
        dist.barrier()
        if rank == 2:
            in_main = []
            before = signal.signal(
                signal.SIGUSR1, lambda *_: in_main.append(threading.current_thread() is threading.main_thread())
            )
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(100_000):
                pass
            assert in_main == [True]
            signal.signal(signal.SIGUSR1, before)
        dist.barrier()

    on_ranks(body)


def test_handlers_of_signals():
    """The last rank's handler is not that of all."""

    def body(rank):
        caught = []
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL
        assert signal.signal(signal.SIGUSR2, lambda number, _: caught.append(number + rank)) == signal.SIG_DFL
        dist.barrier()
        os.kill(os.getpid(), signal.SIGUSR2)
        for _ in range(100_000):
            pass
        dist.barrier()
        assert caught == [signal.SIGUSR2 + rank]

    on_ranks(body)
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL


def _read_and_give_back_mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


SETTINGS = {
    "default type": (torch.set_default_dtype, torch.get_default_dtype, torch.float64),
    "threads": (lambda number: torch.set_num_threads(number), lambda: torch.get_num_threads(), 7),
    "products": (torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, "medium"),
    "algorithms": (torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled, True),
    "anomalies": (torch.autograd.set_detect_anomaly, torch.is_anomaly_enabled, True),
    "warnings": (torch.set_warn_always, torch.is_warn_always_enabled, True),
    "attention": (torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.flash_sdp_enabled, False),
    "convolutions": (
        functools.partial(setattr, torch.backends.cudnn, "benchmark"),
        functools.partial(getattr, torch.backends.cudnn, "benchmark"),
        True,
    ),
    "printing": (lambda digits: torch.set_printoptions(digits), lambda: torch._tensor_str.PRINT_OPTS.precision, 2),
    "folder": (lambda path: os.chdir(path), os.getcwd, "/usr"),
    "mask of files": (lambda mask: os.umask(mask), _read_and_give_back_mask, 0o77),
    "path": (lambda path: sys.path.append(path), lambda: sys.path[-1], "/of-rank"),
    "loggers": (lambda level: logging.getLogger("train").setLevel(level), lambda: logging.getLogger("train").level, 10),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings(setting):
    set_value, get_value, value = SETTINGS[setting]
    of_host = get_value()

    def body(rank):
        for _ in range(2):
            dist.barrier()
            if rank % 2 == 1:
                set_value(value)
            dist.barrier()
            assert get_value() == (value if rank % 2 == 1 else of_host)

    on_ranks(body)
    assert get_value() == of_host


def test_child_processes():
    def body(rank):
        code = "import os; print('LD_PRELOAD' in os.environ, 6 * 7)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.split() == ["False", "42"]
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, str(threading.current_thread() is threading.main_thread()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 100) == b"True"

    on_ranks(body)


def test_child_processes_take_no_virtual_time():
    def body(rank):
        sleep = [sys.executable, "-c", "import time; time.sleep(0.1); print(7)"]
        began = time.time()
        assert subprocess.run(sleep, timeout=20, stdout=subprocess.DEVNULL).returncode == 0
        assert subprocess.run(sleep, capture_output=True, text=True, timeout=0.05).stdout == "7\n"
        with subprocess.Popen(sleep, stdout=subprocess.DEVNULL) as child:
            while child.poll() is None:
                time.sleep(0.001)
        assert time.time() - began < 0.01
        dist.barrier()

    assert len({on_ranks(body, ranks=2).identity for _ in range(3)}) == 1


def test_imports_of_all_ranks_at_once():
    def body(rank):
        import email.mime.multipart
        import unittest.mock
        import xml.etree.ElementTree

        assert unittest.mock.sentinel and xml.etree.ElementTree.XML and email.mime.multipart.MIMEMultipart

    on_ranks(body)


def test_profiles_of_all_ranks_at_once(tmp_path):
    """Kineto, which records all of a process, would end it."""

    def body(rank):
        path = tmp_path / f"{rank}.json"
        ready = []
        with torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1),
            on_trace_ready=lambda profile: ready.append(profile.export_chrome_trace(str(path))),
            profile_memory=True,
            with_stack=True,
        ) as profile:
            for _ in range(4):
                dist.all_reduce(torch.ones(2))
                profile.step()
        assert ready == [None] and path.read_text().startswith("{")
        assert len(profile.key_averages()) == 0

    assert "recorded nothing with torch.profiler" in on_ranks(body).text
