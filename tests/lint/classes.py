# SPDX-License-Identifier: BSD-3-Clause
"""A class must be one object, not slices of a program: checks where its methods are, and how many there are."""

import collections
import re
import typing

import cpp_text

HOUSES = ("core/", "fakes/", "real/", "sim/")
FILES_MAX = 2
METHODS_MAX = 30


class Larger(typing.NamedTuple):
    """A class that exceeds the limits, with its present size. Entries may shrink or go. They may grow only with
    c10d."""
    folder: str  # its files are here, or below
    methods: int
    files: int
    reason: str


LARGER = {
    "ShapeNode": Larger("core/shapes/env/", 66, 4, "c10::SymNodeImpl has as many methods, all of them one-liners"),
    "RankBackend": Larger("core/comm/backend/", 23, 4, "c10d::Backend's interface, one concern of it a file"),
    "CallDescriber": Larger("core/comm/call/", 16, 3, "c10d's calls: one method for each, by their kinds"),
}


def methods_of(text):
    """The classes of the methods that a file defines out of class, each once."""
    for name, _, _ in cpp_text.functions(re.sub(r"\[\[.*?\]\]", "", text)):
        class_name, qualified, _ = name.rpartition("::")
        if qualified:
            yield class_name


def counted(files, read):
    """(house, class): the number of methods in each file."""
    found = collections.defaultdict(collections.Counter)
    for path in files:
        if path.endswith(".cpp") and path.startswith(HOUSES):
            for class_name in methods_of(read(path)):
                found[path.split("/")[0], class_name][path] += 1
    return found


def check(files, read):
    needed = set()
    for (_, class_name), of_files in sorted(counted(files, read).items()):
        methods = sum(of_files.values())
        if methods <= METHODS_MAX and len(of_files) <= FILES_MAX:
            continue
        larger = LARGER.get(class_name)
        if larger is None or not all(path.startswith(larger.folder) for path in of_files):
            larger = Larger("", METHODS_MAX, FILES_MAX, "")
        else:
            needed.add(class_name)
        if methods > larger.methods or len(of_files) > larger.files:
            yield (f"{max(of_files, key=of_files.get)}:1: {class_name} has {methods} methods in {len(of_files)} .cpp "
                   f"files; the limit is {larger.methods} in {larger.files}: cut it into objects of their own")
    for class_name, larger in LARGER.items():
        if class_name not in needed and any(path.startswith(larger.folder) for path in files):
            yield (f"{larger.folder}:1: {class_name} is not larger than other classes: take it out of LARGER in "
                   "tests/lint/classes.py")
