# SPDX-License-Identifier: BSD-3-Clause
"""Each public header compiles alone.

headers.py <build folder> <target> <source folder>

The target's source files include a header each and end with a static_assert that fails: there the compiler is to stop.
What it would do from there on, instantiate the templates that LibTorch's headers left for the end of the file, takes
ten times as long and says nothing about a header. A target that passed is not looked at again until a public header or
a command has changed.
"""

import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

END = "the header ends here"  # the static_assert's text


def commands_of(build, target):
    """Its compile commands, each as (header's source file, words, folder to run it in)."""
    part = f"CMakeFiles/{target}.dir/"
    entries = json.loads((build / "compile_commands.json").read_text())
    return [(entry["file"], shlex.split(entry["command"]), entry["directory"])
            for entry in entries if part in entry["command"]]


def problem_of(words, folder):
    """What the compiler says before it comes to the end of the header; empty: nothing."""
    run = subprocess.run([*words, "-Wfatal-errors"], cwd=folder, env=os.environ | {"LC_ALL": "C"}, capture_output=True,
                         text=True, check=False)
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    if len(errors) == 1 and END in errors[0]:
        return ""
    return run.stderr or "the compiler did not come to the end of the header"


def state_of(commands, source):
    """Changes with every public header and every command."""
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
