# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests and benchmarks that need GPUs, as ./dev gpu-check has packed them beside this file.

    python3 gpu_check.py [--out DIR] [--only tests|jobs|bench] [--filter TESTS] [--seconds N]

Needs GPUs, and a python3 whose torch has the minor version of the LibTorch that the tests were built with. Writes
gpu_check.json and the logs of all runs to DIR, and prints a table. Each step has a time limit; a step that exceeds it
ends and is reported. Exit code: 0 all tests passed and all figures came, 1 something failed, 69 no GPU or another
torch.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
EXIT_UNAVAILABLE = 69
RANKS_OF_PLANTED_BUG = 2  # with a single rank, no other rank would wait
BYTES_AND_TIMES = ((8, 2000), (1 << 20, 2000), (16 << 20, 300), (64 << 20, 100), (256 << 20, 40))


class Budget:
    """The time that is left for everything."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def of(self, most):
        return max(1.0, min(most, self.end - time.monotonic()))


def libraries():
    """The folders of LibTorch, of its dependencies, and of the packed files."""
    import torch
    built_with = (HERE / "libtorch_version").read_text().strip()
    if torch.__version__.split(".")[:2] != built_with.split(".")[:2]:
        print(f"gpu_check: this python3 has torch {torch.__version__}, and the tests were built with LibTorch "
              f"{built_with}. Pack them with ./dev --libtorch={'.'.join(torch.__version__.split('.')[:2])} gpu-check")
        sys.exit(EXIT_UNAVAILABLE)
    folder = pathlib.Path(torch.__file__).parent
    of_nvidia = sorted(str(path) for path in (folder.parent / "nvidia").glob("*/lib"))
    return [str(folder / "lib"), *of_nvidia, str(HERE / "lib")], torch.cuda.device_count(), torch.__version__


def essence(text):
    """The useful part of a failure's output, without GoogleTest's and LibTorch's additions."""
    dull = re.compile(r"frame #\d+:|\[[-=]+\]|\[  (FAILED|PASSED) ? \]|Note: Google|Running main|\s*$| *1 FAILED")
    lines = [line[:300] for line in text.splitlines() if not dull.match(line)]
    return "\n".join("      " + line for line in lines[:40])


class Check:
    def __init__(self, out, budget):
        self.out, self.budget = out, budget
        folders, self.gpus, self.torch = libraries()
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(folders),
                            "REHEARSE_SEEDS_PAGE": str(HERE / "text" / "docs" / "SEEDS.md")}
        self.logs = 0

    def run(self, title, command, most):
        """Runs the command. Returns output, exit code (None: it reached its time limit) and seconds."""
        began = time.monotonic()
        self.logs += 1
        log = self.out / "logs" / f"{self.logs:02}-{re.sub('[^a-z0-9]+', '-', title.lower())}.log"
        log.parent.mkdir(exist_ok=True)
        with open(log, "w+", encoding="utf-8", errors="replace") as file:
            process = subprocess.Popen(command, cwd=self.out, env=self.environment, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(self.budget.of(most))
            except subprocess.TimeoutExpired:
                code = None
            if code is None:
                os.killpg(process.pid, 9)
                process.wait()
        text = log.read_text(encoding="utf-8", errors="replace")
        return text, code, time.monotonic() - began

    def tests(self, chosen):
        """Runs each test in a process of its own, so that a hang or crash affects only that test."""
        program = str(HERE / "bin" / "gpu_test")
        listed, _, _ = self.run("tests", [program, "--gtest_list_tests", f"--gtest_filter={chosen}"], 60)
        names, suite = [], ""
        for line in listed.splitlines():
            if line.startswith("  "):
                names.append(suite + line.split("#")[0].strip())
            elif re.fullmatch(r"[\w/]+\.\s*(#.*)?", line):
                suite = line.split("#")[0].strip()
        results = []
        for name in names:
            text, code, seconds = self.run(name, [program, f"--gtest_filter={name}"], 60)
            state = "passed" if code == 0 else "out of time" if code is None else "failed"
            if code == 0 and "[  SKIPPED ]" in text:
                state = "skipped"
            results.append({"test": name, "state": state, "seconds": round(seconds, 1)})
            print(f"  {state:11} {seconds:5.1f} s  {name}", flush=True)
            if state in ("failed", "out of time"):
                print(essence(text), flush=True)
        return results

    def figures(self, text):
        return [json.loads(line) for line in text.splitlines() if line.startswith('{"figure"')]

    def ours(self, program, parameters, ranks):
        scenario = self.out / f"{program}.toml"
        lines = [f'program = "{program}"', 'mode = "real"', "[world]", f"ranks = {ranks}", "[parameters]"]
        lines += [f"{key} = {value}" for key, value in parameters.items()]
        scenario.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [str(HERE / "bin" / "gpu_bench"), "run", str(scenario), "--output", str(self.out / "run")]
        return self.run(f"{program} ours", command, 90)

    def theirs(self, program, numbers, ranks):
        command = [sys.executable, str(HERE / "torch_bench.py"), str(ranks), program, *map(str, numbers)]
        return self.run(f"{program} torch", command, 90)

    def jobs(self):
        """Runs the examples with each transport that supports GPUs, and compares them with the simulation."""
        text = f'text = "{HERE / "text"}"'
        small = ["steps = 8", "batch = 2", "context = 32", "layers = 2", "width = 32", "heads = 2",
                 "reference_every = 4", text]
        scenarios = {"lm_ddp": [*small, "bucket_cap_mb = 0.02"], "lm_fsdp": small, "planted_bug": []}
        for name, parameters in scenarios.items():
            lines = [f'program = "{name}"', "[world]", f"ranks = {self.gpus}", "[parameters]", *parameters]
            (self.out / f"{name}.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        results = []
        for transport in ("nccl", "processes"):
            for name, how, expected in (("lm_ddp", "run", 0), ("lm_fsdp", "run", 0), ("planted_bug", "run", 2),
                                        ("lm_ddp", "validate", 0), ("lm_fsdp", "validate", 0),
                                        ("planted_bug", "validate", 0)):
                title = f"{name} {how} {transport}"
                if name == "planted_bug" and self.gpus < RANKS_OF_PLANTED_BUG:
                    results.append({"test": title, "state": "skipped", "seconds": 0})
                    print(f"  {'skipped':11} {title}: needs {RANKS_OF_PLANTED_BUG} GPUs", flush=True)
                    continue
                arguments = [how, str(self.out / f"{name}.toml"), f"--with={transport}", "--quiet", "--output"]
                command = [str(HERE / "bin" / name), *arguments,
                           str(self.out / "run" / title.replace(" ", "-"))]
                command += ["--tolerance=1e-2"] if how == "validate" else []
                text, code, seconds = self.run(title, command, 60)
                state = "passed" if code == expected else "out of time" if code is None else "failed"
                results.append({"test": title, "state": state, "seconds": round(seconds, 1)})
                print(f"  {state:11} {seconds:5.1f} s  {title}", flush=True)
                if state != "passed":
                    print(essence(text), flush=True)
        return results

    def benches(self):
        ranks = self.gpus
        rows = []
        jobs = [("start_up", {}, "s")]
        jobs += [("allreduce", {"bytes": size, "times": times}, "us") for size, times in BYTES_AND_TIMES]
        jobs.append(("ddp_step", {"times": 20}, "us"))
        for program, parameters, unit in jobs:
            row = {"figure": program, **parameters, "ranks": ranks, "unit": unit}
            for who, outcome in (("ours", self.ours(program, parameters, ranks)),
                                 ("torch", self.theirs(program, parameters.values(), ranks))):
                text, code, seconds = outcome
                told = self.figures(text)
                row[who] = round(seconds, 2) if unit == "s" and code == 0 else told[-1]["us"] if told else None
                if told and "bus_GBps" in told[-1]:
                    row[who + "_bus_GBps"] = told[-1]["bus_GBps"]
                if row[who] is None:
                    print(f"  {who} {program}: exit {code}\n{essence(text)}", flush=True)
            if row["ours"] and row["torch"]:
                row["ratio"] = round(row["ours"] / row["torch"], 2)
            rows.append(row)
            print("  " + json.dumps(row), flush=True)
        return rows


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--out", default="gpu-check-out")
    arguments.add_argument("--only", choices=("tests", "jobs", "bench"))
    arguments.add_argument("--filter", default="*", help="of the tests, as --gtest_filter")
    arguments.add_argument("--seconds", type=float, default=460)
    asked = arguments.parse_args()
    out = pathlib.Path(asked.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    check = Check(out, Budget(asked.seconds))
    if check.gpus == 0:
        print("there is no GPU here")
        return EXIT_UNAVAILABLE
    print(f"{check.gpus} GPUs, torch {check.torch}", flush=True)
    tests = check.tests(asked.filter) if asked.only in (None, "tests") else []
    tests += check.jobs() if asked.only in (None, "jobs") else []
    rows = check.benches() if asked.only in (None, "bench") else []
    told = {"gpus": check.gpus, "torch": check.torch, "tests": tests, "figures": rows}
    (out / "gpu_check.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    counts = {state: sum(each["state"] == state for each in tests)
              for state in ("passed", "skipped", "failed", "out of time")}
    print("tests: " + ", ".join(f"{number} {state}" for state, number in counts.items()))
    for row in rows:
        size = f"{row['bytes']:>11,} B" if "bytes" in row else " " * 13
        print(f"{row['figure']:10} {size}  ours {row['ours']!s:>9} {row['unit']:2}  torch {row['torch']!s:>9}  "
              f"ratio {row.get('ratio')}")
    whole = not counts["failed"] and not counts["out of time"] and all(row.get("ratio") for row in rows)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
