# SPDX-License-Identifier: BSD-3-Clause
"""Builds the wheel of the package (PEP 517): CMake compiles and collects the files, here they become a wheel.

Environment:
REHEARSE_LIBTORCH_DIR  the LibTorch to build with; without it, pip installs the default torch for the build
REHEARSE_BUILD_DIR     a folder in which CMake has configured Rehearse; without it, one is made in build/wheel
"""

import base64
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SUMMARY = "Runs every rank of a distributed PyTorch job in one process: deterministic, in virtual time, with a report"
OPTIONS = ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH", "INSTALL", "REAL")  # what a wheel does without


def _found(pattern, file):
    return re.search(pattern, (ROOT / file).read_text(), re.MULTILINE).group(1)


def _default_torch():
    minor = _found(r"^readonly default_minor=([\d.]+)", "dev")
    return _found(rf"^{re.escape(minor)} torch==([\d.]+)", "core/cmake/libtorch_versions.txt")


def _libtorch():
    """The folder of LibTorch, or None."""
    if "REHEARSE_LIBTORCH_DIR" in os.environ:
        return Path(os.environ["REHEARSE_LIBTORCH_DIR"]).resolve()
    spec = importlib.util.find_spec("torch")
    return Path(spec.submodule_search_locations[0]) if spec is not None else None


def _tools():
    return [tool for tool in ("cmake", "ninja") if shutil.which(tool) is None]


def get_requires_for_build_wheel(config_settings=None):
    torch = [] if "REHEARSE_LIBTORCH_DIR" in os.environ else [f"torch=={_default_torch()}"]
    return torch + _tools()


def _run(*words):
    subprocess.run([str(word) for word in words], check=True)


def _build(libtorch):
    """The folder in which CMake has built the package."""
    if "REHEARSE_BUILD_DIR" in os.environ:
        folder = Path(os.environ["REHEARSE_BUILD_DIR"])
    else:
        folder = ROOT / "build" / "wheel"
        off = [f"-DREHEARSE_{option}=OFF" for option in OPTIONS]
        where = [f"-DREHEARSE_LIBTORCH_DIR={libtorch}", f"-DREHEARSE_PYTHON_INTERPRETER={sys.executable}"]
        _run("cmake", "--preset", "release", "-S", ROOT, "-B", folder, "-DREHEARSE_PYTHON=ON", *off, *where)
    _run("cmake", "--build", folder, "--target", "rehearse_preload", "rehearse_extension")
    return folder


def _metadata(version, torch):
    lines = [
        "Metadata-Version: 2.1",
        "Name: rehearse",
        f"Version: {version}",
        f"Summary: {SUMMARY}",
        "License: BSD-3-Clause",
        "Requires-Python: >=3.10",
        f"Requires-Dist: torch=={torch}.*",
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "README.md").read_text(),
    ]
    return "\n".join(lines)


ENTRY_POINTS = """[console_scripts]
rehearse = rehearse._launch:main

[pytest11]
rehearse = rehearse_pytest
"""


def _pack(stage, facts, path):
    """A wheel: the files, and a table of them with their hashes."""
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(each for each in stage.rglob("*") if each.is_file()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
            name = file.relative_to(stage).as_posix()
            rows.append(f"{name},sha256={digest},{file.stat().st_size}")
            archive.write(file, name)
        record = f"{facts.name}/RECORD"
        archive.writestr(record, "\n".join([*rows, f"{record},,", ""]))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    libtorch = _libtorch()
    if libtorch is None:
        raise SystemExit("rehearse: there is no torch; name its folder: REHEARSE_LIBTORCH_DIR=.../site-packages/torch")
    numbers = re.search(r"__version__ = '(\d+)\.(\d+)", (libtorch / "version.py").read_text()).groups()
    torch = ".".join(numbers)
    version = f"{_found(r'project.rehearse VERSION ([0-9.]+)', 'CMakeLists.txt')}+torch{torch}"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    folder = _build(libtorch)
    with tempfile.TemporaryDirectory() as stage:
        _run("cmake", "--install", folder, "--component", "python", "--prefix", stage)
        facts = Path(stage) / f"rehearse-{version}.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(_metadata(version, torch))
        (facts / "entry_points.txt").write_text(ENTRY_POINTS)
        wheel = ["Wheel-Version: 1.0", "Generator: rehearse", "Root-Is-Purelib: false", f"Tag: {tag}", ""]
        (facts / "WHEEL").write_text("\n".join(wheel))
        shutil.copy(ROOT / "LICENSE", facts)
        name = f"rehearse-{version}-{tag}.whl"
        _pack(Path(stage), facts, Path(wheel_directory) / name)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("rehearse: build from a clone of the repository; there is no archive of sources")
