# SPDX-License-Identifier: BSD-3-Clause
"""Checks the tables about c10d's interface: c10d_tables.py <root> <LibTorch's include folder>.

docs/C10D.md must name exactly the virtual methods of c10d::Backend, Work and Store that the installed headers declare,
and a test for each; a row may say since which version there is the method. tests/README.md must name a test of ours for
each row of its table of PyTorch's tests. Every named test must exist in a source file. Rehearse's table of operations
must have each operation of c10d. Each finding is one line; the exit status is 1 if there is any.
"""

import pathlib
import re
import sys

CLASSES = ("Backend", "Work", "Store")
# c10d's own back ends use these names since 2.12 for what our back ends call COALESCED.
NAMES_OF_COALESCED = ("REDUCE_SCATTER_TENSOR_COALESCED", "ALLGATHER_INTO_TENSOR_COALESCED")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
RAPIDCHECK = re.compile(r"^RC_GTEST_\w+\(\s*(\w+)\s*,\s*(\w+)", re.M)


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)


def virtual_methods(header, name):
    """The names of the virtual methods of class `name`, without destructors."""
    text = without_comments(header)
    body = re.search(r"\bclass\s+(?:\w+\s+)?" + name + r"\s*:[^;{]*\{", text)
    if not body:
        raise ValueError(f"no class {name}")
    depth, end = 1, body.end()
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    declarations = re.findall(r"\bvirtual\b([^;{]*)", text[body.end():end])
    names = [re.search(r"(~?\w+)\s*\(", declaration) for declaration in declarations]
    return {match.group(1) for match in names if match and not match.group(1).startswith("~")}


def enumerators(header, name):
    """The names of an enumeration, in order. Leaves out names with an explicit value of 100 or more."""
    body = re.search(r"\benum\s+class\s+(?:\w+\s+)?" + name + r"\b[^{]*\{([^}]*)\}", without_comments(header))
    if not body:
        raise ValueError(f"no enumeration {name}")
    names = [entry.split("=") for entry in body.group(1).split(",") if entry.strip()]
    return [entry[0].strip() for entry in names if len(entry) == 1 or int(entry[1]) < 100]


def check_operations(root, include):
    """Checks that each c10d operation has a row in our table."""
    document = "core/internal/rehearse_internal/comm/op_table.h"
    declared = enumerators((include / "torch/csrc/distributed/c10d/Work.hpp").read_text(), "OpType")
    rows = re.findall(r"OpRow\{OpType::(\w+)", (root / document).read_text().split("kUnknown")[0])
    for name in declared:
        if name not in rows and name not in NAMES_OF_COALESCED:
            yield f"{document}: OpType::{name} is declared in Work.hpp and has no row"


def table(text, heading):
    """The rows below a heading, up to the next heading, as lists of cells."""
    section = re.search(r"^## " + re.escape(heading) + r"\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        return []
    rows = [line for line in section.group(1).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def known_tests(root):
    tests = set()
    for path in (root / "tests").rglob("*.cpp"):
        text = path.read_text()
        tests |= {f"{suite}.{case}" for pattern in (TEST, RAPIDCHECK) for suite, case in pattern.findall(text)}
    return tests


def method_of(row):
    """The method of a row, and the minor version of LibTorch 2 since which c10d has it."""
    match = re.fullmatch(r"`(\w+)`(?: since 2\.(\d+))?", row[0])
    if not match:
        raise ValueError(f"{row[0]} is neither `method` nor `method` since 2.N")
    return match.group(1), int(match.group(2) or 0)


def minor_of(include):
    version = (include / "torch/headeronly/version.h").read_text()
    return int(re.search(r"#define TORCH_VERSION_MINOR (\d+)", version).group(1))


def check_rows(document, rows, tests):
    """Checks that each row's last cell names at least one test, and only existing tests."""
    for row in rows:
        named = re.findall(r"`(\w+\.\w+)`", row[-1])
        if not named:
            yield f"{document}: {row[0]} names no test"
        for test in named:
            if test not in tests:
                yield f"{document}: {row[0]} names {test}, which is in no source file"


def findings(root, include):
    tests = known_tests(root)
    document = "docs/C10D.md"
    text = (root / document).read_text()
    minor = minor_of(include)
    for name in CLASSES:
        header = include / "torch/csrc/distributed/c10d" / f"{name}.hpp"
        declared = virtual_methods(header.read_text(), name)
        rows = table(text, name)
        listed = [method for method, since in map(method_of, rows) if since <= minor]
        for method in sorted(declared - set(listed)):
            yield f"{document}: {name}::{method} is declared in {header.name} and is in no row"
        for method in sorted(set(listed) - declared):
            yield f"{document}: {name}::{method} has a row and is not declared in {header.name}"
        for method in sorted({method for method in listed if listed.count(method) > 1}):
            yield f"{document}: {name}::{method} has two rows"
        yield from check_rows(document, rows, tests)
    yield from check_operations(root, include)
    document = "tests/README.md"
    rows = table((root / document).read_text(), "PyTorch's own C++ tests")
    if not rows:
        yield f"{document}: the table of PyTorch's tests is missing"
    yield from check_rows(document, rows, tests)


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    found = list(findings(pathlib.Path(arguments[0]), pathlib.Path(arguments[1])))
    print("\n".join(found) if found else "c10d_tables: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
