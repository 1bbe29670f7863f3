#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_fr_trace.py <dumps> <out.tsv>: the ranks that PyTorch's Python analyzer names for the corpus' dumps.

<dumps>: the folder that `REHEARSE_CORPUS_DUMPS=<dumps> corpus_tests --gtest_filter='CorpusDumps*'` leaves. Writes a
line for each report: its id, and the ranks of the first problem that the analyzer logs, as culprits or as missing. If
the analyzer names none, the reason follows after a further tab. Needs `pip install torch tabulate`.
"""

import io
import json
import logging
import pathlib
import pickle
import re
import sys
import tempfile

from torch.distributed.flight_recorder import fr_trace
from torch.distributed.flight_recorder.components.fr_logger import FlightRecorderLogger


def write_dumps(run, folder):
    for rank, entries in enumerate(run["entries"]):
        own = [g for g in run["groups"] if rank in g.get("made_by", g["ranks"])]
        groups = {g["name"]: g | {"ranks": str(g["ranks"])} for g in own}
        dump = {"version": run["version"], "rank": rank, "pg_config": groups, "entries": entries}
        (folder / f"rank_{rank}").write_bytes(pickle.dumps(dump))


def analyze(folder):
    """Returns the analyzer's log, and the exception that ended it."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logger = FlightRecorderLogger().logger
    logger.addHandler(handler)
    try:
        fr_trace.main([str(folder), "--prefix", "rank_"])
        return log.getvalue(), ""
    except (Exception, SystemExit) as error:  # its assertions raise exceptions of many kinds
        return log.getvalue(), f"{type(error).__name__}: {error}"
    finally:
        logger.removeHandler(handler)


def named(text):
    for line in text.splitlines():
        if line.startswith("missing ranks: "):
            return sorted(int(rank) for rank in re.findall(r"\d+", line))
        if line.startswith("error msg: "):
            return sorted({int(rank) for rank in re.findall(r"Culprit rank (\d+)", line)})
    return []


def main():
    lines = ["# Made by tests/data/make_fr_trace.py: whom torch.distributed.flight_recorder.fr_trace names.\n"]
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        with tempfile.TemporaryDirectory() as folder:
            write_dumps(json.loads(path.read_text()), pathlib.Path(folder))
            text, error = analyze(pathlib.Path(folder))
        ranks = ",".join(map(str, named(text)))
        why = error.splitlines()[0][:100] if error else ""
        lines.append(f"{path.stem}\t{ranks}" + (f"\t{why}\n" if why else "\n"))
    pathlib.Path(sys.argv[2]).write_text("".join(lines))


main()
