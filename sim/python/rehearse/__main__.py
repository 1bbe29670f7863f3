# SPDX-License-Identifier: BSD-3-Clause
"""python -m rehearse run train.py --ranks=4 -- its own arguments"""

import os
import sys

from ._run import command

name = " ".join(["python -m rehearse", *os.environ.get("REHEARSE_OPTIONS", "").split()])
code = command([name, *sys.argv[1:]])
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # ranks of an ended world have left threads and locks behind
