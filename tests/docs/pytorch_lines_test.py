# SPDX-License-Identifier: BSD-3-Clause
"""pytorch_lines_test.py <root> <job>: runs the guides' lines that need PyTorch for Python, beside dumps_test.py's
dumps.

Uses the first of these Pythons that can import torch: $REHEARSE_TORCH_PYTHON, the one in .venv, python3. If none can,
their missing packages must be those that the guide's line installs: the packages that torch itself requires. `job` is a
program of the real mode; without it, torchrun is not tested.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
JOB = sys.argv[2] if len(sys.argv) > 2 else None
MINOR = re.search(r"^readonly default_minor=(\S+)", (ROOT / "dev").read_text(), re.MULTILINE).group(1)
VERSIONS = (ROOT / "core/cmake/libtorch_versions.txt").read_text()
TORCH = re.search(rf"^{re.escape(MINOR)} torch==(\S+)", VERSIONS, re.MULTILINE).group(1)


def line(page, beginning):
    """The words of the one line of code in the page that begins with `beginning`."""
    text = (ROOT / "docs" / page).read_text()
    (found,) = re.findall(r"^    (" + re.escape(beginning) + r".*)$", text, re.MULTILINE)
    return found.split()


def free_port():
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]


def run(words, python):
    """Runs the words with that Python instead of the one that the guide has just installed. torchrun serves its store
    at a free port, because its usual one could belong to another job of this machine."""
    program = {"torch-python/bin/python": [python], "torchrun": [python, "-m", "torch.distributed.run"]}[words[0]]
    environment = os.environ | {"PET_MASTER_PORT": str(free_port())}
    finished = subprocess.run(program + words[1:], capture_output=True, text=True, check=False, env=environment)
    assert finished.returncode == 0, f"{words}: {finished.returncode}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


def problem(python):
    finished = subprocess.run([python, "-c", "import torch"], capture_output=True, text=True, check=False)
    return finished.stderr.strip().splitlines()[-1] if finished.returncode else ""


def required():
    """The packages that pip installs with torch, under the names of modules and libraries, without versions."""
    (metadata,) = ROOT.glob(f".venv/lib/python3*/site-packages/torch-{TORCH}*.dist-info/METADATA")
    names = re.findall(r"^Requires-Dist: ([\w.-]+)", metadata.read_text(), re.MULTILINE)
    return {name.lower().replace("-", "_") for name in names}


def main():
    install = line("GUIDE.md", "torch-python/bin/pip install")
    assert install[2] == f"torch=={TORCH}", f"./dev has LibTorch {TORCH}: {install}"
    fr_trace = line("GUIDE.md", "torch-python/bin/python -m torch.distributed.flight_recorder.fr_trace")
    torchrun = line("REAL.md", "torchrun --nproc-per-node=2")
    pythons = [os.environ.get("REHEARSE_TORCH_PYTHON"), str(ROOT / ".venv/bin/python"), shutil.which("python3")]
    problems = {python: problem(python) for python in pythons if python and os.path.exists(python)}
    for python, why in problems.items():
        if why:
            continue
        run(fr_trace, python)
        print("fr_trace has read the dumps")
        if JOB:
            pathlib.Path("torchrun.toml").write_text('program = "sum"\n')
            told = run([{"my_job": JOB, "my_job.toml": "torchrun.toml"}.get(word, word) for word in torchrun], python)
            assert "[1] OK: 2 ranks returned" in told, told
            print("torchrun has started the ranks")
        return
    venv = problems.get(str(ROOT / ".venv/bin/python"))
    if venv is None:
        print("not run: there is no .venv")
        return
    missing = re.search(r"No module named '(\w+)|(lib\w+)\.so", venv)
    assert missing, f"what .venv lacks is not known: {venv}"
    module = missing.group(1)
    assert module is None or module in required() | {"torch"}, f"{install} does not install {module}"
    print(f"not run: {venv}")


main()
