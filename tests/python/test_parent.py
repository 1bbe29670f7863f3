# SPDX-License-Identifier: BSD-3-Clause
"""Scripts that start their own ranks, and what launchers give to ranks."""

import re
import subprocess
import sys
import textwrap

import pytest

_HEAD = """
import os, queue, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

def begin(rank, size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29501"
    dist.init_process_group("gloo", rank=rank, world_size=size)
"""


def _run(folder, script, *words, command="run", own=()):
    """What the command prints about the script, and its exit code."""
    (folder / "train.py").write_text(_HEAD + textwrap.dedent(script))
    words = [sys.executable, "-m", "rehearse", command, "train.py", *words, *(["--", *own] if own else [])]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=300)
    return ran.stdout + ran.stderr, ran.returncode


def _verdicts(text):
    return re.findall(r"^(OK|[A-Z ]+): ", text, re.MULTILINE)


def test_spawn_once_for_each_world(tmp_path):
    text, code = _run(
        tmp_path,
        """
        def train(rank, size, what):
            begin(rank, size)
            value = torch.ones(1) * rank
            dist.all_reduce(value)
            print(what, rank, value.item(), __name__, os.environ.get("RANK"), mp.current_process().name)

        if __name__ == "__main__":
            mp.spawn(train, args=(3, "first"), nprocs=3)
            mp.spawn(train, args=(2, "second"), nprocs=2)
            print("after both")
        """,
    )
    assert code == 0, text
    for rank in range(3):
        assert f"first {rank} 3.0 __mp_main__ None SpawnProcess-" in text, text
    assert "second 0 1.0" in text and "second 1 1.0" in text and text.count("after both") == 1
    assert text.count("OK: 3 ranks returned") == 1 and text.count("OK: 2 ranks returned") == 1
    assert "replay: python -m rehearse --world=2 replay rehearse-out/train-2/run.rlog" in text


def test_processes_and_a_queue(tmp_path):
    text, code = _run(
        tmp_path,
        """
        def train(rank, size, results):
            begin(rank, size)
            value = torch.ones(2) * rank
            dist.all_reduce(value)
            results.put((rank, value))

        if __name__ == "__main__":
            results = mp.Queue()
            processes = [mp.Process(target=train, args=(rank, 4, results)) for rank in range(4)]
            for process in processes:
                process.start()
            values = dict(results.get() for _ in processes)
            for process in processes:
                process.join()
            print(sorted(values), values[2].tolist(), [process.exitcode for process in processes])
        """,
    )
    assert code == 0 and "[0, 1, 2, 3] [6.0, 6.0] [0, 0, 0, 0]" in text, text


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_what_a_process_has_of_its_parent(tmp_path, method):
    """A spawned process runs the script anew; a forked one has all that its parent has, and changes its own only."""
    text, code = _run(
        tmp_path,
        f"""
        class Settings:
            rate = 1.0

        count, names, settings = 0, [], Settings()

        def train(rank, results):
            global count
            count += 1 + rank
            names.append(rank)
            results[rank] = (count, list(names), settings.rate, float(torch.rand(1)))

        if __name__ == "__main__":
            count, settings.rate = 10, 0.5
            names.append("parent")
            torch.manual_seed(7)
            with mp.Manager() as manager:
                results = manager.dict()
                context = mp.start_processes(train, args=(results,), nprocs=2, join=False, start_method={method!r})
                while not context.join():
                    pass
                own = float(torch.rand(1))
                for rank, values in sorted(results.items()):
                    print("values", rank, *values[:3], values[3] == own)
            print("parent", count, names)
        """,
    )
    if method == "fork":
        told = ("values 0 11 ['parent', 0] 0.5 True", "values 1 12 ['parent', 1] 0.5 True")
    else:
        told = ("values 0 1 [0] 1.0 False", "values 1 2 [1] 1.0 False")
    assert all(each in text for each in told), text
    assert code == 0 and "parent 10 ['parent']" in text


def test_a_rank_that_fails_ends_the_script(tmp_path):
    text, code = _run(
        tmp_path,
        """
        def train(rank):
            begin(rank, 3)
            for step in range(3):
                if (rank, step) == (1, 2):
                    raise ValueError("bad batch")
                dist.barrier()

        if __name__ == "__main__":
            try:
                mp.spawn(train, nprocs=3)
            except Exception:
                print("swallowed")
            print("went on")
        """,
    )
    assert "RANK FAILED: rank 1: ValueError: bad batch" in text and code == 1, text
    assert "culprit: rank 1 at train.py:" in text and "swallowed" not in text and "went on" not in text


@pytest.mark.parametrize("numbers", ["min(rank, 1), 3", "2 - rank, 3", "rank % 2, 2"])
def test_ranks_are_numbered_as_their_processes(tmp_path, numbers):
    text, code = _run(
        tmp_path,
        f"""
        def train(rank):
            begin({numbers})
            dist.barrier()

        if __name__ == "__main__":
            mp.spawn(train, nprocs=3)
        """,
    )
    assert code == 1 and "ranks have the numbers of their processes" in " ".join(text.split()), text


def test_ranks_that_hang_are_named(tmp_path):
    text, code = _run(
        tmp_path,
        """
        def train(rank, results):
            begin(rank, 3)
            if rank != 2:
                dist.barrier()

        if __name__ == "__main__":
            mp.spawn(train, (mp.SimpleQueue(),), nprocs=3)
        """,
    )
    assert "DEADLOCK: barrier #" in text and "rank 2 has ended" in text and code == 3, text


def test_workers_that_talk_by_queues_events_and_locks(tmp_path):
    text, code = _run(
        tmp_path,
        """
        class Worker(mp.Process):
            def __init__(self, tasks, results, total, ready):
                super().__init__(name="worker")
                self.tasks, self.results, self.total, self.ready = tasks, results, total, ready

            def run(self):
                self.ready.wait()
                while (task := self.tasks.get()) is not None:
                    with self.total.get_lock():
                        self.total.value += task
                    self.results.put((self.name, task * task))

        if __name__ == "__main__":
            mp.set_start_method("spawn")
            tasks, results, total, ready = mp.Queue(), mp.Queue(), mp.Value("i", 0), mp.Event()
            workers = [Worker(tasks, results, total, ready) for _ in range(3)]
            for worker in workers:
                worker.start()
            for task in [*range(10), None, None, None]:
                tasks.put(task)
            ready.set()
            for worker in workers:
                worker.join()
            print(sorted(results.get() for _ in range(10))[-1], total.value, results.empty())
        """,
    )
    assert code == 0 and "('worker', 81) 45 True" in text, text


def test_a_parent_that_talks_to_running_ranks_is_told_that_it_cannot(tmp_path):
    script = """
        def train(results, done):
            results.put(7)
            done.wait({})

        if __name__ == "__main__":
            results, done = mp.Queue(), mp.Event()
            process = mp.get_context("spawn").Process(target=train, args=(results, done))
            process.start()
            print("result", results.get())
            done.set()
            process.join()
        """
    text, code = _run(tmp_path, script.format("timeout=5"))
    assert code == 0 and "result 7" in text and "but here they have ended" in text, text
    text, code = _run(tmp_path, script.format(""))
    assert code == 3 and "what it would have told these ranks later is missing" in text, text


def test_tensors_in_shared_memory_are_shared(tmp_path):
    text, code = _run(
        tmp_path,
        """
        def train(rank, shared, model):
            begin(rank, 2)
            shared[rank] += rank + 1
            with torch.no_grad():
                model.weight.add_(1)
            dist.barrier()
            print("sees", shared.tolist(), model.weight.tolist(), model.weight.requires_grad)

        if __name__ == "__main__":
            shared, model = torch.zeros(2).share_memory_(), torch.nn.Linear(1, 1, bias=False)
            torch.nn.init.zeros_(model.weight)
            model.share_memory()
            mp.spawn(train, (shared, model), nprocs=2)
            print("parent", shared.tolist(), model.weight.tolist())
        """,
    )
    assert code == 0 and text.count("sees [1.0, 2.0] [[2.0]] True") == 2 and "parent [1.0, 2.0] [[2.0]]" in text, text


def test_tensors_in_a_queue_are_shared_and_those_of_a_fork_copied(tmp_path):
    text, code = _run(
        tmp_path,
        """
        def train(rank, queue, own, tied):
            assert tied[0] is tied[1] and own.tolist() == [0, 0]
            own += 1
            begin(rank, 2)
            if rank == 0:
                value = torch.zeros(1)
                queue.put((value, {"text": [1]}))
                value += 5  # as in processes: the memory is one
            dist.barrier()
            if rank == 1:
                print("got", *queue.get())
            dist.barrier()

        if __name__ == "__main__":
            own, tied = torch.zeros(2), torch.ones(1)
            mp.start_processes(train, (mp.Queue(), own, [tied, tied]), nprocs=2, start_method="fork")
            print("parent", own.tolist())
        """,
    )
    assert code == 0 and "got tensor([5.]) {'text': [1]}" in text and "parent [0.0, 0.0]" in text, text


def test_replay_and_sweep(tmp_path):
    script = """
        def train(rank, size):
            begin(rank, size)
            value = torch.zeros(1)
            if rank == 0:
                for _ in range(1, size):
                    dist.recv(value)
                    print("from", int(value))
                assert int(value) != 1, "the last is rank 1"
            else:
                dist.send(value + rank, 0)

        if __name__ == "__main__":
            mp.spawn(train, (int(sys.argv[1]),), nprocs=int(sys.argv[1]))
        """
    text, code = _run(tmp_path, script, "--seeds=1..30", command="sweep", own=["3"])
    assert code == 1 and "the last is rank 1" in text, text
    seed = re.search(r"seed[ =](\d+)", text)
    assert seed is not None, text
    text, code = _run(tmp_path, script, f"--seed={seed[1]}", own=["3"])
    identity = re.search(r"identity=(\w+)", text)[1]
    ran = subprocess.run(
        [sys.executable, "-m", "rehearse", "replay", "rehearse-out/train/run.rlog"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert f"the same run as in the log, identity={identity}" in ran.stdout, ran.stdout + ran.stderr


def test_what_cannot_be_copied_for_a_fork_is_refused(tmp_path):
    text, code = _run(
        tmp_path,
        """
        if __name__ == "__main__":
            process = mp.get_context("fork").Process(target=lambda: None)
            process.start()
            process.join()
        """,
    )
    assert code == 1 and "cannot be copied for a start by fork" in text, text


def test_pools_and_loaders_of_the_parent_work(tmp_path):
    text, code = _run(
        tmp_path,
        """
        def square(value):
            return value * value

        def train(rank, values):
            print("rank", rank, values)

        if __name__ == "__main__":
            with mp.get_context("fork").Pool(2) as pool:
                values = pool.map(square, range(4))
            loader = torch.utils.data.DataLoader(torch.arange(4), batch_size=2, num_workers=2)
            mp.spawn(train, (values + [each.sum().item() for each in loader],), nprocs=1)
        """,
    )
    assert code == 0 and "rank 0 [0, 1, 4, 9, 1, 5]" in text, text


@pytest.mark.parametrize(
    "launcher, told",
    [
        ("torchrun", "1 3 None None []"),
        ("launch", "1 3 None None ['--local-rank=1']"),
        ("slurm", "None None 1 None []"),
        ("mpi", "None None None 1 []"),
    ],
)
def test_launchers(tmp_path, launcher, told):
    text, code = _run(
        tmp_path,
        """
        names = ["RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"]
        print(*map(os.environ.get, names), sys.argv[1:])
        """,
        "--ranks=3",
        f"--launcher={launcher}",
    )
    assert code == 0 and told in text, text


def test_an_unknown_launcher_is_refused(tmp_path):
    text, code = _run(tmp_path, "", "--launcher=srun")
    assert code == 1 and "--launcher=srun: there are auto, script, torchrun, launch, slurm, mpi" in text


def test_a_script_that_starts_nothing_says_what_to_do(tmp_path):
    script = 'if __name__ == "__main__":\n    mp.spawn(print, nprocs=torch.cuda.device_count())'
    text, code = _run(tmp_path, script)
    assert code == 1 and "add --launcher=torchrun; with --cuda, it finds GPUs" in text, text
    text, code = _run(tmp_path, script, "--cuda", "--ranks=3")
    assert code == 0 and "OK: 3 ranks returned" in text, text


def test_a_script_without_a_main_guard_is_told_to_have_one(tmp_path):
    text, code = _run(tmp_path, "mp.spawn(print, nprocs=2)")
    assert code == 1 and 'under if __name__ == "__main__"' in " ".join(text.split()), text
