# SPDX-License-Identifier: BSD-3-Clause
"""Checks docs/SEEDS.md against the sources: seeds_page.py <root>.

Each of PyTorch's 82 tests has one row, under its class. A row with the state `test` names GoogleTests that are there,
one of them of the seed's name; while a row says `planned`, there is none of its name. What the planned rows wait for is
explained, and nothing else. Each finding is one line; the exit status is 1 if there is any.
"""

import pathlib
import re
import sys

from c10d_tables import TEST, table

DOCUMENT = "docs/SEEDS.md"
SEEDS = {"TestFakeDistributedSingleProc": 10, "TestMultiProc": 29, "TestSingleProc": 23, "DistributedPatternTests": 20}


def known_tests(root):
    """(suite, name) of every GoogleTest."""
    tests = set()
    for path in sorted((root / "tests").rglob("*.cpp")):
        tests |= set(TEST.findall(path.read_text()))
    return tests


def of_seed(tests, class_name, name):
    """Its own tests, and variants of it: a suite is the seed's class, perhaps with more behind (on ranks)."""
    return {f"{suite}.{case}" for suite, case in tests if case == name and suite.startswith(class_name)}


def check_row(place, class_name, name, state, tests):
    found = of_seed(tests, class_name, name)
    if state.startswith("planned: "):
        for test in sorted(found):
            yield f"{place} is planned, and {test} is there"
        return
    if not state.startswith("test:"):
        yield f"{place}: its state must be `test: ` and tests, or `planned: ` and a piece of work"
        return
    named = re.findall(r"`(\w+)\.(\w+)`", state)
    for suite, case in named:
        if (suite, case) not in tests:
            yield f"{place} names {suite}.{case}, which is in no source file"
    if not found & {f"{suite}.{case}" for suite, case in named}:
        yield f"{place} names no test {class_name}.{name}"


def check_works(text, awaited):
    listed = {row[0].strip("`") for row in table(text, "What they wait for")}
    for work in sorted(awaited - listed):
        yield f"{DOCUMENT}: '{work}' is waited for, and is not explained"
    for work in sorted(listed - awaited):
        yield f"{DOCUMENT}: '{work}' is explained, and nothing waits for it"


def findings(root):
    text = (root / DOCUMENT).read_text()
    tests = known_tests(root)
    awaited = set()
    for class_name, count in SEEDS.items():
        names = []
        for row in table(text, class_name):
            name, state = row[0].strip("`"), row[1]
            place = f"{DOCUMENT}: {class_name}.{name}"
            names.append(name)
            yield from check_row(place, class_name, name, state, tests)
            if state.startswith("planned: "):
                awaited.add(state.removeprefix("planned: "))
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{DOCUMENT}: {class_name}.{name} has two rows"
        if len(set(names)) != count:
            yield f"{DOCUMENT}: {class_name} has {len(set(names))} tests, and must have {count}"
    yield from check_works(text, awaited)


def main(root):
    found = list(findings(pathlib.Path(root)))
    print("\n".join(found) if found else f"{sum(SEEDS.values())} tests, each in one row")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
