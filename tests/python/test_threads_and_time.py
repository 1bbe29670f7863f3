# SPDX-License-Identifier: BSD-3-Clause
"""Threads, locks, queues and asyncio of ranks, in virtual time."""

import asyncio
import concurrent.futures
import queue
import threading
import time

import torch
import torch.distributed as dist
from ranks import RANKS, on_ranks


def test_an_hour_takes_no_time():
    started = time.monotonic()

    def body(rank):
        before = time.time(), time.monotonic()
        time.sleep(3600)
        assert 3600 <= time.time() - before[0] < 3601
        assert 3600 <= time.monotonic() - before[1] < 3601

    on_ranks(body)
    assert time.monotonic() - started < 60


def test_locks_events_and_conditions():
    def body(rank):
        lock, again = threading.Lock(), threading.RLock()
        event, condition = threading.Event(), threading.Condition()

        def later():
            time.sleep(1)
            event.set()
            with condition:
                condition.notify_all()

        thread = threading.Thread(target=later)
        thread.start()
        with condition:
            with lock, again, again:
                event.wait(0.5)
            assert condition.wait(10)
        thread.join()
        assert event.is_set() and lock.acquire() and not lock.acquire(timeout=0.5)
        meeting = threading.Barrier(2)
        thread = threading.Thread(target=meeting.wait)
        thread.start()
        meeting.wait()
        thread.join()

    on_ranks(body)


def test_queues():
    def body(rank):
        for kind in (lambda: queue.Queue(maxsize=1), queue.SimpleQueue):
            items = kind()

            def produce():
                for item in range(5):
                    items.put(item)
                    time.sleep(1)
                items.put(None)

            thread = threading.Thread(target=produce)
            thread.start()
            assert list(iter(items.get, None)) == [0, 1, 2, 3, 4]
            thread.join()
            try:
                items.get(timeout=2)
                raise AssertionError("nothing is left")
            except queue.Empty:
                pass

    on_ranks(body)


def test_daemons_and_timers():
    def body(rank):
        daemon = threading.Thread(target=lambda: time.sleep(10**6), daemon=True)
        daemon.start()
        daemon.join(timeout=1)
        assert daemon.is_alive()
        rung = []
        timer = threading.Timer(5, lambda: rung.append(1))
        timer.start()
        timer.join()
        assert rung == [1]

    on_ranks(body)


def test_many_threads_of_one_lock():
    def body(rank):
        count, lock = [0], threading.Lock()

        def add():
            for _ in range(20):
                with lock:
                    seen = count[0]
                    time.sleep(0.001)
                    count[0] = seen + 1

        threads = [threading.Thread(target=add) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert count == [200]

    on_ranks(body)


def test_executors():
    def body(rank):
        def slow(number):
            time.sleep(number)
            return number

        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            futures = [executor.submit(slow, number) for number in range(4)]
            assert sorted(each.result() for each in concurrent.futures.as_completed(futures)) == [0, 1, 2, 3]

    on_ranks(body)


def test_threads_that_communicate():
    def body(rank):
        total = torch.ones(2)
        thread = threading.Thread(target=lambda: dist.all_reduce(total))
        thread.start()
        thread.join()
        assert total[0] == RANKS

    on_ranks(body)


def test_asyncio():
    def body(rank):
        async def after(seconds):
            await asyncio.sleep(seconds)
            return seconds

        async def main():
            before = time.monotonic()
            assert await asyncio.wait_for(asyncio.gather(*map(after, range(3))), 60) == [0, 1, 2]
            assert 2 <= time.monotonic() - before < 2.1
            try:
                await asyncio.wait_for(asyncio.sleep(100), 1)
                raise AssertionError("it takes longer")
            except asyncio.TimeoutError:
                pass
            return await asyncio.to_thread(lambda: (time.sleep(1), 5)[1])

        assert asyncio.run(main()) == 5

    on_ranks(body)
