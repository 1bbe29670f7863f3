# SPDX-License-Identifier: BSD-3-Clause
"""Builds the extension for several CPythons, runs the tests with each, and says which were tried.

Usage: versions.py BUILD-FOLDER ENVIRONMENT...

An environment is a folder of `python -m venv` with the whole torch of the build's version, numpy, pytest and tqdm.
"""

import glob
import os
import re
import subprocess
import sys

VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
HERE = os.path.dirname(os.path.abspath(__file__))


def version_of(environment):
    facts = "import sys, sysconfig as s; print(*sys.version_info[:3], s.get_config_var('Py_ENABLE_SHARED'))"
    words = subprocess.check_output([f"{environment}/bin/python3", "-c", facts], text=True).split()
    return ".".join(words[:2]), ".".join(words[:3]) + (", shared" if words[3] == "1" else ", static")


def counts_of(build, environment, test):
    environ = {**os.environ, "REHEARSE_PYTHON_VENV": environment}
    command = [sys.executable, f"{HERE}/run.py", f"{build}/python", test]
    ran = subprocess.run(command, env=environ, cwd=HERE, capture_output=True, text=True)
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", ran.stdout)}
    if ran.returncode != 0:
        print(ran.stdout + ran.stderr)
        counts.setdefault("failed", 1)
    return counts


def main(build, *environments):
    pythons = [f"{environment}/bin/python3" for environment in environments]
    subprocess.check_call(["cmake", "-DREHEARSE_PYTHONS=" + ";".join(pythons), build], stdout=subprocess.DEVNULL)
    subprocess.check_call(["cmake", "--build", build, "--target", "rehearse_extensions"])
    lines, is_good = {}, True
    for environment in environments:
        version, name = version_of(environment)
        total = {"passed": 0, "failed": 0, "error": 0}
        for test in sorted(glob.glob(f"{HERE}/test_*.py")):
            for word, number in counts_of(build, environment, test).items():
                total[word] += number
        failed = total["failed"] + total["error"]
        is_good = is_good and failed == 0
        lines[version] = f"{name}: {total['passed']} passed, {failed} failed"
    for version in VERSIONS:
        print(lines.get(version, f"{version}: not tried, no environment was given"))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
