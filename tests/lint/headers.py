# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each public header compiles alone.

headers.py <build folder> <target> <source folder>

Each source file of the target includes one header and ends with a static_assert that fails, at which the compiler
stops. Going on would instantiate the templates that LibTorch's headers leave for the end of the file. That takes ten
times as long, and says nothing about a header. After a target has passed, it is checked again only after a change of a
public header or a command.
"""

import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

END = "the header ends here"  # the text of the static_assert


def commands_of(build, target):
    """The target's compile commands, each as (header's source file, words, folder to run it in)."""
    part = f"CMakeFiles/{target}.dir/"
    entries = json.loads((build / "compile_commands.json").read_text())
    return [(entry["file"], shlex.split(entry["command"]), entry["directory"])
            for entry in entries if part in entry["command"]]


def problem_of(words, folder):
    """The compiler's output before it reaches the end of the header; empty if there is none."""
    run = subprocess.run([*words, "-Wfatal-errors"], cwd=folder, env=os.environ | {"LC_ALL": "C"}, capture_output=True,
                         text=True, check=False)
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    if len(errors) == 1 and END in errors[0]:
        return ""
    return run.stderr or "the compiler did not come to the end of the header"


def state_of(commands, source):
    """A value that changes with every public header and every command."""
    state = hashlib.sha256(repr(commands).encode())
    for header in sorted(source.glob("*/include/**/*.h")) + sorted(source.glob("*/*/include/**/*.h")):
        state.update(f"{header} {header.stat().st_mtime_ns}\n".encode())
    return state.hexdigest()


def main(build, target, source):
    build = pathlib.Path(build)
    commands = commands_of(build, target)
    if not commands:
        print(f"there are no commands of {target} in {build / 'compile_commands.json'}")
        return 1
    passed = build / f"{target}.passed"
    state = state_of(commands, pathlib.Path(source))
    if passed.exists() and passed.read_text() == state:
        print(f"{target}: {len(commands)} headers, unchanged")
        return 0
    wrong = 0
    for file, words, folder in commands:
        if problem := problem_of(words, folder):
            wrong += 1
            print(f"{file}:\n{problem}")
    print(f"{target}: {len(commands)} headers, {wrong} of them wrong")
    if wrong == 0:
        passed.write_text(state)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
