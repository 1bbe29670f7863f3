# SPDX-License-Identifier: BSD-3-Clause
"""Determines the headers that an installation contains: those that a user can reach.

A header is public, below <house>/include/rehearse, if README, a guide or an example names it, or if a public header
includes it. All other shared headers are internal: below <house>/internal/rehearse_internal, and not installed.
"""

import fnmatch
import re

INCLUDE_FOLDER = re.compile(r"((?:core|fakes|real|sim)(?:/\w+)?)/include/(rehearse/.+\.h)")
NAMED = re.compile(r"<(rehearse(?:_internal)?/[\w/]+\.h)>")
INCLUDED = re.compile(r"^\s*#\s*include\s*" + NAMED.pattern)
INTERNAL = "rehearse_internal/"
# The pages that users read and copy from, and the code that generates users' code. ARCHITECTURE, CONTRIBUTING and the
# decisions are for Rehearse's developers.
PAGES = ("README.md", "docs/*.md", "docs/examples/*.cpp", "docs/examples/*.h", "tests/consumer/project/*.cpp",
         "tests/docs/*.py", "core/cmake/RehearseProgram.cmake")
PAGES_OF_OTHERS = ("docs/ARCHITECTURE.md", "docs/CONTRIBUTING.md", "docs/decisions/*")


def is_page(path):
    return (any(fnmatch.fnmatch(path, page) for page in PAGES)
            and not any(fnmatch.fnmatch(path, page) for page in PAGES_OF_OTHERS))


def public_headers(files):
    """Maps the name under which users include each public header, rehearse/AREA/name.h, to its path."""
    found = (INCLUDE_FOLDER.fullmatch(path) for path in files)
    return {match.group(2): match.group(0) for match in found if match}


def lines_with(pattern, path, text):
    """(path:line, header) for each header that a line names."""
    for number, line in enumerate(text.splitlines(), 1):
        for header in pattern.findall(line):
            yield f"{path}:{number}", header


def check(files, text_of, code_of):
    """The findings. text_of(path) returns a file's text, code_of(path) the same without comments."""
    public = public_headers(files)
    includes = {name: list(lines_with(INCLUDED, path, code_of(path))) for name, path in public.items()}
    named = [found for path in files if is_page(path) for found in lines_with(NAMED, path, text_of(path))]
    for where, header in named:
        if header.startswith(INTERNAL):
            yield f"{where}: <{header}> is internal, and not installed: a user cannot include it"
        elif header not in public:
            yield f"{where}: there is no public header <{header}>"
    for found in includes.values():
        for where, header in found:
            if header.startswith(INTERNAL):
                yield (f"{where}: a public header includes <{header}>, which is not installed: declare what it needs, "
                       "or make that one public")
    reached, left = set(), [header for _, header in named]
    while left:
        header = left.pop()
        if header in public and header not in reached:
            reached.add(header)
            left += [included for _, included in includes[header]]
    for name in sorted(public.keys() - reached):
        path = public[name]
        internal = path.replace("/include/rehearse/", "/internal/" + INTERNAL)
        yield (f"{path}:1: neither README, a guide nor an example leads to <{name}>: name it in the guide that "
               f"describes what it declares, or move it to {internal}")
