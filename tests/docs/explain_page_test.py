# SPDX-License-Identifier: BSD-3-Clause
"""explain_page_test.py <root> <rehearse>: checks what docs/EXPLAIN.md shows.

The page's command, run beside recorded dumps, prints the block that the page shows below it. The environment variables
that the page names exist in LibTorch. The page's Python code compiles. If a Python can import torch (as in
pytorch_lines_test.py), two ranks with gloo use that code and hang, and the test explains their dumps.
"""

import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(sys.argv[1])
REHEARSE = sys.argv[2]
PAGE = (ROOT / "docs/EXPLAIN.md").read_text()
DUMPS = ROOT / "tests/data/flight_recorder/nccl_skip"

HANGS = """
import datetime, sys, time
import torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2,
                        timeout=datetime.timedelta(seconds=240))
leave_dumps(rank, "gloo", every=0.2)
x = torch.ones(3)
dist.all_reduce(x)
if rank == 0:
    dist.broadcast(x, 0)
    dist.all_reduce(x)
time.sleep(240)
"""


def explained(folder):
    finished = subprocess.run([REHEARSE, "explain", folder], capture_output=True, text=True, check=False)
    assert finished.returncode == 3, finished
    return finished.stdout


def block(language, text=PAGE):
    (found,) = re.findall(r"^```" + language + r"\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found


def check_report():
    (folder,) = re.findall(r"^    rehearse explain (\w+)$", PAGE, re.MULTILINE)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DUMPS, folder)
    shown = block("", PAGE[PAGE.index(f"    rehearse explain {folder}"):PAGE.index("## What to read")])
    version = re.compile(r"^rehearse [\d.]+ ", re.MULTILINE)
    assert version.sub("", explained(folder)) == version.sub("", shown), explained(folder)


def check_variables():
    names = set(re.findall(r"\bTORCH_\w+", PAGE))
    assert len(names) >= 8, names
    libraries = list(ROOT.glob(".venv/lib/python3*/site-packages/torch/lib/libtorch_c*.so"))
    if not any("cuda" in library.name for library in libraries):
        print("not looked for: the variables, there is no LibTorch with CUDA in .venv")
        return
    known = set()
    for library in libraries:
        data = library.read_bytes()
        known |= {name for name in names if name.encode() in data}
    assert known == names, names - known


def python_with_torch():
    for python in (os.environ.get("REHEARSE_TORCH_PYTHON"), str(ROOT / ".venv/bin/python"), shutil.which("python3")):
        if python and os.path.exists(python):
            if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
                return python
    return None


def check_gloo():
    code = block("python")
    compile(code, "EXPLAIN.md", "exec")
    python = python_with_torch()
    if python is None:
        print("not run: the thread for gloo, there is no Python with torch")
        return
    shutil.rmtree("gloo", ignore_errors=True)
    os.mkdir("gloo")
    pathlib.Path("hangs.py").write_text(textwrap.dedent(code) + HANGS)
    store = pathlib.Path("hangs_store").absolute()  # a port could belong to another process
    store.unlink(missing_ok=True)
    ranks = [subprocess.Popen([python, "hangs.py", str(rank), str(store)]) for rank in (0, 1)]
    try:
        wait_for_the_hang()
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    report = explained("gloo")
    assert re.match(r'DEADLOCK: \w+ #[23] on group "0:default_pg": rank 1 has not come; ', report), report
    print("gloo's dumps name rank 1")


def wait_for_the_hang():
    """Waits until rank 0's last call is in its dump. A busy machine takes long to import torch."""
    for _ in range(1000):
        time.sleep(0.2)
        paths = [pathlib.Path(f"gloo/dump_rank_{rank}") for rank in (0, 1)]
        if all(path.exists() for path in paths):
            entries = [pickle.loads(path.read_bytes())["entries"] for path in paths]
            if len(entries[0]) >= 2 and len(entries[1]) == 1 and entries[0][-1]["collective_seq_id"] > 1:
                return
    raise AssertionError("no dumps of a hang came")


check_report()
check_variables()
check_gloo()
