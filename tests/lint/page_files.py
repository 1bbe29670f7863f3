# SPDX-License-Identifier: BSD-3-Clause
"""Rules for the scripts and style sheets of report pages."""

import pathlib
import re

SPDX = "SPDX-License-Identifier: BSD-3-Clause"
LICENCE = {".js": f"// {SPDX}", ".css": f"/* {SPDX} */"}
LINES_MAX = 400
WIDTH_MAX = 120
FUNCTION_LINES_MAX = 40

# Code that turns texts into markup or code, or accesses a network.
BANNED = {
    ".js": re.compile(r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|srcdoc|eval|document\.write(?:ln)?|new Function"
                      r"|fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|localStorage|debugger)\b"
                      r"|\bimport\s*[({\"']|\bconsole\.|[^=!]==[^=]|!=[^=]|https?://(?!www\.w3\.org/2000/svg)"),
    ".css": re.compile(r"@import|url\(|https?://|expression\("),
}
# The first line of a function or method, with its indentation: "function f(a) {", "  async f() {", "  get f() {".
FUNCTION = re.compile(r"^( *)(?:async |static |get )*(?:function )?(\w+)\(.*\{$")
NO_FUNCTIONS = {"if", "for", "while", "switch", "catch"}


def long_functions(lines):
    """(name, line number, length) of the functions that are too long. A function ends at the first closing brace with
    its own indentation."""
    for begin, line in enumerate(lines):
        match = FUNCTION.match(line)
        if not match or match[2] in NO_FUNCTIONS:
            continue
        end = next((at for at in range(begin + 1, len(lines)) if re.match(match[1] + r"\}", lines[at])), len(lines) - 1)
        if end - begin + 1 > FUNCTION_LINES_MAX:
            yield match[2], begin + 1, end - begin + 1


def check(files, read):
    for path in files:
        suffix = pathlib.PurePath(path).suffix
        if suffix not in LICENCE:
            continue
        lines = read(path).splitlines()
        if not lines or lines[0] != LICENCE[suffix]:
            yield f"{path}:1: the first line must be {LICENCE[suffix]}"
        if len(lines) > LINES_MAX:
            yield f"{path}:{len(lines)}: {len(lines)} lines; the limit is {LINES_MAX}"
        for number, line in enumerate(lines, 1):
            if len(line) > WIDTH_MAX:
                yield f"{path}:{number}: {len(line)} columns; the limit is {WIDTH_MAX}"
            if not line.isascii():
                yield f"{path}:{number}: write other letters than ASCII as escapes; pages are made of these bytes"
            if found := BANNED[suffix].search(line):
                yield f"{path}:{number}: {found[0].strip()} is not for pages: texts stay texts, and nothing is loaded"
        for name, number, length in long_functions(lines) if suffix == ".js" else ():
            yield f"{path}:{number}: {name} has {length} lines; the limit is {FUNCTION_LINES_MAX}"
