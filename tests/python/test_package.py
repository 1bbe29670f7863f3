# SPDX-License-Identifier: BSD-3-Clause
"""The wheel, in an environment that has nothing else but torch: the script `rehearse`, and the plugin for pytest."""

import importlib.util
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(os.environ["PYTHONPATH"]).resolve()  # in the folder of the build
LIBTORCH = importlib.util.find_spec("torch").submodule_search_locations[0]

SCRIPT = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(1)
dist.all_reduce(value)
if dist.get_rank() == 1 and torch.rand(1) < 2:
    dist.barrier()
print("sum", value.item())
"""

TESTS = """
import pytest
import torch
import torch.distributed as dist
import rehearse

@pytest.fixture
def start():
    return 10

@pytest.mark.rehearse(ranks=4, seeds=3)
def test_sum(start, tmp_path):
    value = torch.full((1,), float(start + rehearse.rank()))
    dist.all_reduce(value)
    assert value.item() == 46
    (tmp_path / "ran").write_text("yes")

@pytest.mark.rehearse(ranks=2)
def test_hang():
    if rehearse.rank() == 0:
        dist.barrier()

@pytest.mark.rehearse
def test_values():
    assert rehearse.rank() == 0, "the number of the rank"

def test_without_ranks(start):
    assert start == 10
"""


def _run(python, words, folder):
    """Without a compiler on the path, and without Rehearse's folders."""
    environ = {"PATH": str(python.parent), "HOME": str(folder)}
    return subprocess.run(
        [str(python.parent / words[0]), *words[1:]],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment with the wheel. torch and pytest are those of this one."""
    folder = tmp_path_factory.mktemp("environment")
    backend = "import sys; sys.path[0] = sys.argv[1]; import rehearse_build as b; print(b.build_wheel(sys.argv[2]))"
    environ = {**os.environ, "REHEARSE_BUILD_DIR": str(PACKAGE.parent), "REHEARSE_LIBTORCH_DIR": LIBTORCH}
    made = subprocess.run(
        [sys.executable, "-c", backend, str(ROOT / "sim/python/wheel"), str(folder)],
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    )
    wheel = folder / made.stdout.split()[-1]
    venv.create(folder / "venv", with_pip=True)
    own = folder / "venv/bin/python"
    library = folder / f"venv/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    (library / "torch_of_tests.pth").write_text(str(Path(LIBTORCH).parent) + "\n")
    install = ["python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)]
    installed = _run(own, install, folder)
    assert installed.returncode == 0, installed.stderr
    return own


def test_the_script(python, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    run = _run(python, ["rehearse", "run", "train.py", "--ranks=3"], tmp_path)
    assert run.returncode != 0 and "DEADLOCK: rank 1 waits in barrier #2" in run.stdout, run.stdout + run.stderr
    replay = run.stdout.partition("replay: python -m rehearse ")[2].splitlines()[0].split()
    assert "DEADLOCK" in _run(python, ["python", "-m", "rehearse", *replay], tmp_path).stdout
    explained = _run(python, ["rehearse", "explain", "rehearse-out/train/report.json"], tmp_path)
    assert "at train.py:8 for ranks 0,2" in explained.stdout, explained.stdout + explained.stderr
    told = _run(python, ["rehearse", "run", "--help"], tmp_path).stdout
    assert "usage: " in told and "--cuda[=device]" in told, told


def test_another_torch_is_refused(python, tmp_path):
    library = next(python.parent.parent.glob("lib/python3*/site-packages"))
    (facts,) = library.glob("rehearse-*.dist-info")
    metadata = (facts / "METADATA").read_text()
    try:
        (facts / "METADATA").write_text(metadata.replace("+torch", "+torch9", 1))
        refused = _run(python, ["python", "-c", "import rehearse"], tmp_path)
        assert refused.returncode != 0 and "is built for torch 92." in refused.stderr, refused.stderr
    finally:
        (facts / "METADATA").write_text(metadata)


def test_the_plugin(python, tmp_path):
    (tmp_path / "test_job.py").write_text(TESTS)
    ran = _run(python, ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path)
    assert "2 failed, 2 passed" in ran.stdout, ran.stdout + ran.stderr
    assert ran.stdout.count("pytest starts again") == 1
    assert "seed 1:" in ran.stdout and "DEADLOCK" in ran.stdout and "test_job.py:21" in ran.stdout, ran.stdout
    assert "rehearse/_run.py" not in ran.stdout and "AssertionError: the number of the rank" in ran.stdout
    chosen = _run(python, ["python", "-m", "pytest", "-q", "-k", "sum", "--rehearse-seeds=5"], tmp_path)
    assert "1 passed, 3 deselected" in chosen.stdout, chosen.stdout
    plain = _run(python, ["python", "-m", "pytest", "-q", "-k", "without"], tmp_path)
    assert "1 passed" in plain.stdout and "starts again" not in plain.stdout
    again = _run(python, ["python", "-m", "pytest", "-q"], tmp_path)
    again = _run(python, ["python", "-m", "pytest", "-q", "--lf"], tmp_path)
    assert "2 failed" in again.stdout, again.stdout


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_the_plugin_with_several_workers(python, tmp_path):
    (tmp_path / "test_job.py").write_text(TESTS)
    ran = _run(python, ["python", "-m", "pytest", "-q", "-n", "2"], tmp_path)
    assert "2 failed, 2 passed" in ran.stdout and "DEADLOCK" in ran.stdout, ran.stdout + ran.stderr
