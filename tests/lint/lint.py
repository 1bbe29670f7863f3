# SPDX-License-Identifier: BSD-3-Clause
"""Checks on the text of the source tree: lint.py <includes|files|functions|classes|pages|public|banned|scripts|
format> <root>.

includes  the include arrows between the houses, and between the rooms inside them (rooms.py has their order)
files     licence line, file length, line width, no disabled tests, no leftovers, no machine paths
functions no function of more than 70 lines
classes   no class with methods in more than 2 .cpp files, or with more than 30 methods there
pages     the files and folders that ARCHITECTURE and CONTRIBUTING name exist
public    only headers that a user can reach are public, and they include no internal one (public_headers.py)
banned    clocks and timed waits that would bypass virtual time; thread_local where state is a fiber's; questions
          for LibTorch's version outside of VERSION_ALLOWED
scripts   scripts and style sheets of report pages: size, width, nothing that loads or turns texts into markup
format    places where the clang-format version that .clang-format names would change a file

Each finding is one line, path:line: what is wrong. The exit status is 1 if there is any.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys

import classes
import cpp_text
import libraries
import page_files
import public_headers
import rooms

CODE = {".h", ".cpp"}
TEXT = CODE | {".cmake", ".txt", ".py", ".toml", ".json", ".md", ".yml", ".in", ".sh", ".js", ".css", ".html", ""}
LINES_MAX = 400
# Files that may be longer, with their present length. Entries may shrink or go, but not grow.
LINES_RATCHET = {}
WIDTH_MAX = 120
FUNCTION_LINES_MAX = 70
# Functions that may be longer, with their present length. Each is one table of cases, and two would not read better.
# Entries may shrink or go, but not grow.
FUNCTIONS_RATCHET = {
    ("tests/core/capture/fake/layer_cases.cpp", "layer_cases"): 76,
    ("tests/core/capture/fake/pointwise_cases.cpp", "pointwise_cases"): 100,
    ("tests/core/capture/fake/view_cases.cpp", "view_cases"): 80,
    ("tests/core/comm/call/arguments_test.cpp", "bad_calls"): 120,
    ("tests/core/comm/matcher/mismatch_cases.cpp", "mismatch_cases"): 208,
    ("tests/core/compile/communication/calls_in_place_test.cpp", "cases"): 101,
    ("tests/core/graph/eager.cpp", "functions"): 91,
    ("tests/parity/refusal_cases.cpp", "refusal_cases"): 90,
}

# Code whose purpose is real time (progress for people, measuring, the boundary itself), and tests that call the
# standard clocks to see that they are interposed.
REAL_TIME_ALLOWED = (
    "core/exec/fiber/native_section.h",
    "core/exec/interpose/",
    "core/exec/monitor/find_thread.cpp",
    "core/exec/monitor/watchdog.cpp",
    "real/",
    "sim/cli/",
    "tests/bench/",
    "tests/core/interpose/",
    "tests/real/",
    "tests/sim/search/",
)

LIBTORCH = re.compile(r"(ATen|c10|torch|caffe2)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
REAL_TIME = re.compile(
    r"std::chrono::(steady|system|high_resolution)_clock::now"
    r"|\bthis_(thread|fiber)::sleep_(for|until)\b"
    r"|\bboost::fibers::\w*timed_\w+"
)
# Capture keeps its state per fiber: all ranks share a thread, and TorchRankState exchanges only LibTorch's
# thread_locals.
STATE_OF_FIBERS = tuple(folder + room for room in ("shapes/", "capture/", "compile/")
                        for folder in ("core/", "core/include/rehearse/", "core/internal/rehearse_internal/"))
# The header that asks for LibTorch's version, and the test that reads the version of any LibTorch.
VERSION_ALLOWED = ("core/internal/rehearse_internal/libtorch/version.h", "tests/core/torch_state/inventory_test.cpp")
VERSION = re.compile(r"\bTORCH_(ABI_)?VERSION|<torch/(headeronly/)?version\.h>|REHEARSE_COMPILED_WITH_LIBTORCH")
THREAD_LOCAL = re.compile(r"\bthread_local\b")
LEFTOVERS = re.compile(r"\b(TO" r"DO|FIX" r"ME|DISABLED" r"_)")
MACHINE_PATHS = re.compile(r"(?<![\w.$}/-])/(wo" r"rk|ro" r"ot|ho" r"me)/\w")


def tracked_files(root):
    """The project's files, relative to root: those that git tracks or would add; all files if there is no git."""
    git = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if git.returncode == 0:
        names = [name for name in git.stdout.split("\0") if name]
    else:
        names = [path.relative_to(root).as_posix() for path in root.rglob("*")]
        names = [name for name in names if not re.match(r"(build|rehearse-out|\.venv|\.git)/", name)]
    return sorted(name for name in names if (root / name).is_file())


def code_without_comments(text):
    """The text with comments blanked. Keeps line numbers and the file names of includes."""
    return cpp_text.blanked(text, {"comment"})


def house_of(path):
    parts = path.split("/")
    return parts[0] if parts[0] in ("core", "fakes", "sim", "real") else None


# The area of a header, <rehearse/AREA/...> or <rehearse_internal/AREA/...>, and the house that owns it.
HOUSE_OF_AREA = {"fakes": "fakes", "sim": "sim", "real": "real", "rehearse.h": "sim"}
MAY_INCLUDE = {
    "core": {"core"},
    "fakes": {"core", "fakes"},
    "sim": {"core", "fakes", "sim"},
    "real": {"core", "fakes", "real"},
}

def is_torch_free(path):
    return path.startswith(("core/exec/", "core/include/rehearse/exec/", "core/internal/rehearse_internal/exec/"))


def owner_of_include(included, root):
    parts = included.split("/")
    if parts[0] in ("rehearse", "rehearse_internal") and len(parts) > 1:
        return HOUSE_OF_AREA.get(parts[1], "core")
    for house in MAY_INCLUDE:  # a private header, named from its house
        if len(parts) > 1 and (root / house / included).is_file():
            return house
    return None


def check_includes(root, files):
    exceptions = rooms.Exceptions(files)
    for path in files:
        house = house_of(path)
        if pathlib.PurePath(path).suffix not in CODE:
            continue
        text = code_without_comments((root / path).read_text())
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            included = match.group(1)
            where = f"{path}:{number}"
            if path.endswith(".h") and included in ("torch/torch.h", "torch/all.h"):
                yield f"{where}: <{included}> in a header: include the parts that are needed"
            if house is None:
                continue
            owner = owner_of_include(included, root)
            if owner and owner not in MAY_INCLUDE[house]:
                allowed = sorted(MAY_INCLUDE[house])
                yield f"{where}: {house} includes {included} of {owner}; {house} may include {allowed}"
            if (wrong := rooms.wrong_arrow(path, included)) and not exceptions.allow(path, included):
                yield f"{where}: {wrong}"
            if wrong := libraries.wrong_link(path, included):
                yield f"{where}: {wrong}"
            if re.match(r"g(test|mock)/", included) and not path.startswith("sim/gtest/"):
                yield f"{where}: only sim/gtest includes GoogleTest"
            if is_torch_free(path) and LIBTORCH.match(included):
                yield f"{where}: core/exec includes {included}; it must stay free of LibTorch"
    yield from exceptions.unused()


def check_files(root, files):
    for path in files:
        suffix = pathlib.PurePath(path).suffix
        if suffix not in TEXT:
            continue
        try:
            lines = (root / path).read_text().splitlines()
        except UnicodeDecodeError:
            continue
        if suffix in CODE and (not lines or lines[0] != "// SPDX-License-Identifier: BSD-3-Clause"):
            yield f"{path}:1: the first line must be // SPDX-License-Identifier: BSD-3-Clause"
        if suffix in CODE | {".py", ".cmake"} and len(lines) > LINES_RATCHET.get(path, LINES_MAX):
            yield f"{path}:{len(lines)}: {len(lines)} lines; the limit is {LINES_RATCHET.get(path, LINES_MAX)}"
        texts = cpp_text.raw_lines("\n".join(lines)) if suffix in CODE else set()
        for number, line in enumerate(lines, 1):
            if suffix in CODE | {".py"} and len(line) > WIDTH_MAX and number not in texts:
                yield f"{path}:{number}: {len(line)} columns; the limit is {WIDTH_MAX}"
            if suffix in CODE | {".py", ".cmake", ".txt", ".js", ".css"} and LEFTOVERS.search(line):
                yield f"{path}:{number}: {LEFTOVERS.search(line).group(0)}: finish it or file it elsewhere"
            if MACHINE_PATHS.search(line):
                yield f"{path}:{number}: a path of one machine: {line.strip()[:80]}"


def check_pages(root, files):
    """Checks that the places that the developers' pages name in backticks exist in the tree."""
    there = set(files) | {folder.as_posix() for path in files for folder in pathlib.PurePath(path).parents}
    tops = {path.split("/")[0] for path in files if "/" in path}
    for page in ("docs/ARCHITECTURE.md", "docs/CONTRIBUTING.md"):
        if page not in files:
            continue
        for number, line in enumerate((root / page).read_text().splitlines(), 1):
            for named in re.findall(r"`([\w.*-]+/[\w./*-]*)`", line):
                if named.split("/")[0] in tops and not fnmatch.filter(there, named.rstrip("/")):
                    yield f"{page}:{number}: {named} is not there"


def check_public(root, files):
    return public_headers.check(files, lambda path: (root / path).read_text(),
                                lambda path: code_without_comments((root / path).read_text()))


def check_functions(root, files):
    for path in files:
        if pathlib.PurePath(path).suffix not in CODE:
            continue
        try:
            for name, line, length in cpp_text.functions((root / path).read_text()):
                limit = FUNCTIONS_RATCHET.get((path, name), FUNCTION_LINES_MAX)
                if length > limit:
                    yield f"{path}:{line}: {name} has {length} lines; the limit is {limit}"
        except ValueError as error:
            yield f"{path}:1: its functions cannot be told apart: {error}"


def check_classes(root, files):
    return classes.check(files, lambda path: (root / path).read_text())


def check_scripts(root, files):
    return page_files.check(files, lambda path: (root / path).read_text())


def check_banned(root, files):
    for path in files:
        if pathlib.PurePath(path).suffix not in CODE:
            continue
        text = code_without_comments((root / path).read_text())
        for number, line in enumerate(text.splitlines(), 1):
            match = REAL_TIME.search(line)
            if match and not path.startswith(REAL_TIME_ALLOWED):
                yield (f"{path}:{number}: {match.group(0)}: use the world's clock; where real time is the point, "
                       "add the file to REAL_TIME_ALLOWED in tests/lint/lint.py")
            if path.startswith(STATE_OF_FIBERS) and THREAD_LOCAL.search(line):
                yield f"{path}:{number}: thread_local is shared by all ranks: use exec::FiberLocal"
            if path not in VERSION_ALLOWED and VERSION.search(line):
                yield f"{path}:{number}: asks for LibTorch's version: use {VERSION_ALLOWED[0]}"


def clang_format(root):
    """The formatter's path, or an error's text, because another version formats differently."""
    wanted = re.match(r"# clang-format ([\d.]*\d)", (root / ".clang-format").read_text()).group(1)
    formatter = root / ".venv/bin/clang-format"
    get_it = f"./dev format gets clang-format {wanted}"
    if not formatter.is_file():
        return None, f".venv/bin/clang-format:1: is not there: {get_it}"
    found = subprocess.run([formatter, "--version"], capture_output=True, text=True, check=True).stdout
    if f"version {wanted}" not in found:
        return None, f".venv/bin/clang-format:1: is {found.strip()}: {get_it}"
    return formatter, None


def check_format(root, files):
    formatter, problem = clang_format(root)
    if problem:
        yield problem
        return
    code = [path for path in files if pathlib.PurePath(path).suffix in CODE]
    found = subprocess.run([formatter, "-n", "--Werror", *code], cwd=root, capture_output=True, text=True, check=False)
    where = r"^(\S+:\d+):\d+: error: code should be clang-formatted"
    for place in re.findall(where, found.stderr, flags=re.M):
        yield f"{place}: not in the format of .clang-format: run ./dev format"
    if found.returncode != 0 and not re.search(where, found.stderr, flags=re.M):
        yield f".clang-format:1: {found.stderr.strip()}"


CHECKS = {"includes": check_includes, "files": check_files, "functions": check_functions, "classes": check_classes,
          "pages": check_pages, "public": check_public, "banned": check_banned, "scripts": check_scripts,
          "format": check_format}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 64
    root = pathlib.Path(arguments[1])
    files = tracked_files(root)
    findings = list(CHECKS[arguments[0]](root, files))
    print("\n".join(findings) if findings else f"{arguments[0]}: {len(files)} files, nothing found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
