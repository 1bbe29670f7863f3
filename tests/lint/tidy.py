# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy over the product, with the checks of .clang-tidy.

tidy.py <source folder> <build folder> <clang-tidy> [--fast]

Makes units of the product's sources, and takes those of examples and tests that include a header which the product only
offers. A unit is checked again after a change of clang-tidy, its checks, the unit's command, or a file of ours that the
unit includes. --fast leaves out clang-analyzer, which takes several times as long as all other checks. The last lines
of the output are the findings, each once. The exit status is 1 if there is any.
"""

import concurrent.futures
import functools
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

HOUSES = ("core", "fakes", "real", "sim")
# A unit of 24 sources takes 16 s without clang-analyzer, 11 s of them for LibTorch's headers.
SOURCES_OF_UNIT = 24
# The analyzer skips what the main file includes, unless the name of the main file says that the includes are sources.
NAME_OF_UNIT = "UnifiedSource{}.cxx"
ONLY_FOR_GCC = ("-c", "-Werror", "-Winvalid-pch", "-fno-gnu-unique")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)
FINDING = re.compile(r"^(\S+:\d+:\d+): (?:warning|error): .*( \[[\w.,-]+\])$", re.M)


def words_for_clang(entry):
    """The words of a compile command that say how to read the file, without precompiled headers and options of g++."""
    words = shlex.split(entry["command"])[1:]
    output = words.index("-o")
    return [word for word in words[:output] + words[output + 2:] if word not in ONLY_FOR_GCC + (entry["file"],)]


@functools.cache
def hash_and_includes(file):
    content = file.read_bytes()
    return hashlib.sha256(content).hexdigest(), [name.decode() for name in INCLUDE.findall(content)]


def files_of(file, words):
    """The file, and all files that it includes from folders of ours, directly or not."""
    folders = [pathlib.Path(word[2:]) for word in words if word.startswith("-I")]
    found, waiting = set(), [file]
    while waiting:
        if (file := waiting.pop()) not in found:
            found.add(file)
            paths = [folder / name for name in hash_and_includes(file)[1] for folder in (file.parent, *folders)]
            waiting += [path for path in paths if path.is_file()]
    return sorted(found)


def sources_of(root, build):
    """The product's sources by their words for clang, and what else is compiled, as (file, words)."""
    product, others = {}, []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file, words = pathlib.Path(entry["file"]), words_for_clang(entry)
        if not file.is_relative_to(build):
            sources, house = [file], file.relative_to(root).parts[0]
        elif file.parent.name == "Unity":
            sources, house = hash_and_includes(file)[1], file.relative_to(build).parts[0]
        else:
            continue
        if house in HOUSES:
            product.setdefault(tuple(words), []).extend(sources)
        else:
            others.append((file, words))
    return product, others


def units_of(root, build):
    """Units until all files of the product that anything includes are in one, as (file, words, the unit's files)."""
    sources_by_words, others = sources_of(root, build)
    units = []
    for words, sources in sources_by_words.items():
        for first in range(0, len(sources), SOURCES_OF_UNIT):
            unit = build / "tidy" / NAME_OF_UNIT.format(len(units))
            unit.write_text("".join(f'#include "{source}"\n' for source in sources[first:first + SOURCES_OF_UNIT]))
            units.append((unit, words))
    seen = set()
    for file, words in units + sorted(others):
        files = files_of(file, words)
        product = {each for each in files if each.relative_to(root).parts[0] in HOUSES}
        if not product <= seen:
            seen |= product
            yield file, words, files


def output_of(unit, root, build, command):
    """What clang-tidy says about the unit."""
    file, words, files = unit
    headers = [folder for word, folder in zip(words, words[1:]) if word == "-isystem"]
    state = [command, words, [(folder, pathlib.Path(folder).stat().st_mtime_ns) for folder in headers],
             [hash_and_includes(each)[0] for each in (*files, root / ".clang-tidy")]]
    known = build / "tidy" / f"{hashlib.sha256(repr(state).encode()).hexdigest()}.txt"
    if known.exists():
        return known.read_text()
    run = subprocess.run([*command, file, "--", *words], cwd=build, capture_output=True, text=True, check=False)
    text = run.stdout.replace(f"{root}/", "")
    if run.returncode == 0:
        known.write_text(text)
    elif not FINDING.search(text):
        text += f"{run.stderr}\n{file}:1:1: error: clang-tidy ended with {run.returncode} [clang-tidy]\n"
    return text


def main(root, build, program, *options):
    root, build = pathlib.Path(root).resolve(), pathlib.Path(build).resolve()
    (build / "tidy").mkdir(exist_ok=True)
    command = [pathlib.Path(program).absolute(), "--quiet", f"--config-file={root / '.clang-tidy'}",
               f"--header-filter=^{re.escape(str(root))}/({'|'.join(HOUSES)})/"]
    if options == ("--fast",):
        command.append("--checks=-clang-analyzer-*")
    check = functools.partial(output_of, root=root, build=build, command=command)
    units, findings = list(units_of(root, build)), {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, text in enumerate(pool.map(check, units), 1):
            print(f"{text}{number}/{len(units)} units", flush=True)
            findings |= {match.group(1, 2): match.group(0) for match in FINDING.finditer(text)}
    print("\n".join([*sorted(findings.values()), f"{len(units)} units, {len(findings)} findings"]))
    return int(not units or bool(findings))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
