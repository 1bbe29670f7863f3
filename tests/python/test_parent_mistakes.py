# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of scripts that start their own ranks, which processes punish by errors or by waiting for ever."""

import pytest
from test_parent import _run

PUT = """
    import numpy

    def work(rank, queue, done):
        queue.put({value})
        {after}

    if __name__ == "__main__":
        queue, done = mp.Queue(), mp.Event()
        processes = [mp.Process(target=work, args=(rank, queue, done)) for rank in range(2)]
        for each in processes:
            each.start()
        {before}
        values = [queue.get() for _ in processes]
        {behind}
"""
JOIN = "[each.join() for each in processes]"
TENSORS = "ended while tensors were unread that it had put into a queue"
MUCH = "left more than 64 KiB unread in a queue, and its parent joins it before it reads"


@pytest.mark.parametrize(
    "value, order, remark",
    [
        ("torch.ones(3)", {"behind": JOIN}, TENSORS),
        ("{'model': torch.ones(3)}", {"behind": JOIN}, TENSORS),
        ("torch.ones(3).numpy()", {"behind": JOIN}, None),
        ("bytes(1 << 20)", {"before": JOIN}, MUCH),
        ("bytes(1 << 20)", {"behind": JOIN}, None),
        ("bytes(1 << 10)", {"before": JOIN}, None),
    ],
)
def test_what_is_left_in_queues(tmp_path, value, order, remark):
    text, code = _run(tmp_path, PUT.format(**{"value": value, "after": "", "before": "", "behind": "", **order}))
    told = " ".join(text.split())
    assert code == 0 and [each for each in (TENSORS, MUCH) if each in told] == ([remark] if remark else []), text


def test_a_parent_that_would_be_a_rank_is_refused(tmp_path):
    text, code = _run(
        tmp_path,
        """
        if __name__ == "__main__":
            process = mp.Process(target=begin, args=(1, 2))
            process.start()
            begin(0, 2)
            process.join()
        """,
    )
    assert code == 1 and "in the process that starts the ranks: it cannot be one of them" in text, text
    assert "--launcher=torchrun" not in text


def test_ranks_that_a_helper_module_starts_need_the_launcher(tmp_path):
    (tmp_path / "helper.py").write_text("import torch.multiprocessing as mp\ndef launch(f): mp.spawn(f, nprocs=2)\n")
    script = """
        import helper

        def work(rank):
            print("rank", rank)

        if __name__ == "__main__":
            helper.launch(work)
    """
    text, code = _run(tmp_path, script.replace("mp.", "m.").replace("import helper", "import helper; del mp"))
    assert code != 0 and "--launcher=script" in " ".join(text.split()), text
    text, code = _run(tmp_path, script, "--launcher=script")
    assert code == 0 and "rank 1" in text, text


def test_a_traceback_begins_in_the_script(tmp_path):
    script = """
        def work(rank):
            begin(rank, 2)
            if rank == 1:
                raise ValueError("planted")
            dist.barrier()

        if __name__ == "__main__":
            mp.spawn(work, nprocs=2)
    """
    text, code = _run(tmp_path, script)
    shown = text.partition("[rank1]: Traceback (most recent call last):")[2].splitlines()[1]
    assert code != 0 and shown.startswith("[rank1]:   File") and "train.py" in shown and "in work" in shown, text
