# SPDX-License-Identifier: BSD-3-Clause
"""Tests which commands gpu_check.py runs for several numbers of GPUs. Needs no GPU: a fake Check runs nothing."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import gpu_check


class Commands(gpu_check.Check):
    """Answers each command with the exit code of a successful job."""

    def __init__(self, out, gpus):
        self.out, self.gpus, self.ran = out, gpus, []

    def run(self, title, command, most):
        self.ran.append(title)
        return "", 2 if title.startswith("planted_bug run") else 0, 0.1


def jobs(gpus):
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
        check = Commands(pathlib.Path(out), gpus)
        return {each["test"]: each["state"] for each in check.jobs()}, check.ran


class Jobs(unittest.TestCase):
    def test_one_gpu_skips_the_bug_that_needs_two_ranks(self):
        states, ran = jobs(1)
        self.assertEqual(len(states), 12)
        for title, state in states.items():
            self.assertEqual(state, "skipped" if title.startswith("planted_bug") else "passed", title)
        self.assertEqual(len(ran), 8)

    def test_two_gpus_run_all(self):
        states, ran = jobs(2)
        self.assertEqual(set(states.values()), {"passed"})
        self.assertEqual(len(ran), 12)

    def test_sharded_job_is_run_and_validated_by_each_transport(self):
        _, ran = jobs(1)
        for transport in ("nccl", "processes"):
            for how in ("run", "validate"):
                self.assertIn(f"lm_fsdp {how} {transport}", ran)


if __name__ == "__main__":
    unittest.main()
