# SPDX-License-Identifier: BSD-3-Clause
"""Checks docs/SEEDS.md against the sources: seeds_page.py <root>.

Each of PyTorch's 82 tests has one row, under its class. A row with the state `test` names existing GoogleTests, all
with the seed test's name and in suites that begin with its class. It has one run for each: ranks, cap, pieces,
compiles. Every GoogleTest of such a suite has the fixture that checks its run, and is in its row. While a row says
`planned`, there is no GoogleTest with its name. The page explains what the planned rows wait for, and nothing else. It
says how many rows are `test`. Each finding is one line; the exit status is 1 if there is any.
"""

import pathlib
import re
import sys

from c10d_tables import table

DOCUMENT = "docs/SEEDS.md"
SEEDS = {"TestFakeDistributedSingleProc": 10, "TestMultiProc": 29, "TestSingleProc": 23, "DistributedPatternTests": 20}


TEST = re.compile(r"^(TEST(?:_F|_P)?)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
SUITE = re.compile(rf"^({'|'.join(SEEDS)})")
FIXTURE = '#include "core/compile/seeds/seed_test.h"'
COUNTS = r"\d+(, \d+)*"
RUN = re.compile(rf"(fake|\d+( \d+)*) / (-|\d+(\.\d+)? MB) / \d+ / {COUNTS}(; {COUNTS})?")
HERE = re.compile(r"(\d+)\s+of\s+(\d+)\s+are\s+here")


def tests_of_seeds(root):
    """{(suite, name): whether it has the fixture} for every GoogleTest in a suite that begins with the class of a seed
    test."""
    tests = {}
    for path in sorted((root / "tests").rglob("*.cpp")):
        text = path.read_text()
        for macro, suite, name in TEST.findall(text):
            if SUITE.match(suite):
                tests[suite, name] = macro == "TEST_F" and FIXTURE in text
    return tests


def of_seed(tests, class_name, name):
    """The GoogleTests of a seed test, with its variants: a suite is the seed test's class, perhaps with a suffix."""
    return {f"{suite}.{case}" for suite, case in tests if case == name and suite.startswith(class_name)}


def check_runs(place, cell, named):
    runs = [run.strip() for run in cell.split("<br>")]
    if len(runs) != len(named):
        yield f"{place} has {len(runs)} runs for {len(named)} tests"
    for run in runs:
        if not RUN.fullmatch(run):
            yield f"{place}: '{run}' is not a run: ranks or 'fake' / cap ('25 MB') or '-' / pieces / compiles"


def check_row(place, class_name, row, tests):
    name, state, runs = row[0].strip("`"), row[1], row[2]
    found = of_seed(tests, class_name, name)
    if state.startswith("planned: "):
        for test in sorted(found):
            yield f"{place} is planned, and {test} is there"
        if runs:
            yield f"{place} is planned, and has a run"
        return
    if not state.startswith("test: "):
        yield f"{place}: its state must be `test: ` and tests, or `planned: ` and a piece of work"
        return
    named = re.findall(r"`(\w+\.\w+)`", state)
    for test in named:
        if test not in found:
            yield f"{place} names {test}, which is in no source file as a test of this seed"
    for test in sorted(found - set(named)):
        yield f"{place} does not name {test}"
    yield from check_runs(place, runs, named)


def check_tests(tests, rows):
    for (suite, name), has_fixture in sorted(tests.items()):
        class_name = SUITE.match(suite).group(1)
        if name not in rows[class_name]:
            yield f"{DOCUMENT}: {suite}.{name} is a test of no row of {class_name}"
        if not has_fixture:
            yield f"{DOCUMENT}: {suite}.{name} is not a TEST_F of SeedTest, and so is not held to its row"


def check_works(text, awaited):
    listed = {row[0].strip("`") for row in table(text, "What they wait for")}
    for work in sorted(awaited - listed):
        yield f"{DOCUMENT}: '{work}' is waited for, and is not explained"
    for work in sorted(listed - awaited):
        yield f"{DOCUMENT}: '{work}' is explained, and nothing waits for it"


def check_number(text, rows):
    here = sum(state.startswith("test") for states in rows.values() for state in states.values())
    said = HERE.search(text)
    if not said or said.groups() != (str(here), str(sum(SEEDS.values()))):
        yield f"{DOCUMENT}: it must say '{here} of {sum(SEEDS.values())} are here'"


def findings(root):
    text = (root / DOCUMENT).read_text()
    tests = tests_of_seeds(root)
    rows = {}
    for class_name, count in SEEDS.items():
        names = []
        for row in table(text, class_name):
            names.append(row[0].strip("`"))
            place = f"{DOCUMENT}: {class_name}.{names[-1]}"
            if len(row) != 4:
                yield f"{place} has {len(row)} columns, and must have 4"
                continue
            rows.setdefault(class_name, {})[names[-1]] = row[1]
            yield from check_row(place, class_name, row, tests)
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{DOCUMENT}: {class_name}.{name} has two rows"
        if len(set(names)) != count:
            yield f"{DOCUMENT}: {class_name} has {len(set(names))} tests, and must have {count}"
        rows.setdefault(class_name, {})
    yield from check_tests(tests, rows)
    yield from check_number(text, rows)
    states = {state for by_name in rows.values() for state in by_name.values()}
    yield from check_works(text, {state.removeprefix("planned: ") for state in states if state.startswith("planned: ")})


def main(root):
    found = list(findings(pathlib.Path(root)))
    print("\n".join(found) if found else f"{sum(SEEDS.values())} tests, each in one row")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
