# SPDX-License-Identifier: BSD-3-Clause
"""dumps_test.py <script>: runs the guide's Python code beside the files of the guide's job, and checks the dumps.

8 ranks, 5 barriers each. The keys are those that fr_trace's loader and builder look up.
"""

import pathlib
import pickle
import runpy
import shutil
import sys

shutil.rmtree("dumps", ignore_errors=True)
runpy.run_path(sys.argv[1])
assert sorted(path.name for path in pathlib.Path("dumps").iterdir()) == [f"rank_{rank}" for rank in range(8)]
for rank in range(8):
    dump = pickle.loads(pathlib.Path(f"dumps/rank_{rank}").read_bytes())
    assert dump["rank"] == rank and dump["version"] == "2.10", dump
    world = {"name": "world", "desc": "world", "ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}
    assert dump["pg_config"] == {"world": world}, dump["pg_config"]
    keys = ("profiling_name", "record_id", "collective_seq_id", "state")
    calls = [tuple(entry[key] for key in keys) for entry in dump["entries"]]
    assert calls == [("nccl:all_reduce_barrier", i, i + 1, "completed") for i in range(5)], calls
print("8 dumps")
