# SPDX-License-Identifier: BSD-3-Clause
"""python -m rehearse run train.py --ranks=4 -- its own arguments"""

import os
import sys

from ._launch import HELP
from ._run import command

name = " ".join(["python -m rehearse", *os.environ.get("REHEARSE_OPTIONS", "").split()])
code = command([name, *sys.argv[1:]])
if {"--help", "help"}.intersection(sys.argv[1:]) and code == 0:
    print(HELP, end="")
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # ranks of an ended world have left threads and locks behind
