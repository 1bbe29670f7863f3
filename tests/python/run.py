# SPDX-License-Identifier: BSD-3-Clause
"""Runs pytest in the environment that has the whole torch, with Rehearse preloaded.

Usage: run.py FOLDER-OF-THE-PACKAGE TEST-FILE
"""

import glob
import os
import sys

package, test = sys.argv[1:]
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
venv = os.environ.get("REHEARSE_PYTHON_VENV", os.path.join(root, ".venv-python"))
torch = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages", "torch", "lib"))
if not torch:
    sys.exit(f"{venv} has no torch. `./dev test --full` makes it; REHEARSE_PYTHON_VENV names another environment")
environ = {
    **os.environ,
    "LD_PRELOAD": os.path.join(package, "librehearse.so"),
    "REHEARSE_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
    "LD_LIBRARY_PATH": torch[0],
    "PYTHONPATH": package,
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
}
python = os.path.join(venv, "bin", "python3")
os.execve(python, [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", test], environ)
