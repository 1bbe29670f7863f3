# SPDX-License-Identifier: BSD-3-Clause
"""How a rank's code ends: as a process does, with its functions of atexit, its excepthook, os._exit()."""

import atexit
import contextlib
import functools
import multiprocessing
import os
import sys
import traceback

from . import _ranks


class Exit(SystemExit):
    """os._exit(): nothing of the script runs after it."""


def _is_of_rank(function):
    """Functions that packages register for all ranks of this process are not for the end of one rank."""
    return getattr(function, "__module__", None) in {"__mp_main__", *_ranks.current().modules}


def _own_functions():
    register, unregister = atexit.register, atexit.unregister

    @functools.wraps(register)
    def register_own(function, *arguments, **options):
        if not _ranks.in_rank() or not _is_of_rank(function):
            return register(function, *arguments, **options)
        _ranks.current().at_exit.append((function, arguments, options))
        return function

    @functools.wraps(unregister)
    def unregister_own(function):
        own = _ranks.current().at_exit
        own[:] = [each for each in own if each[0] != function]
        unregister(function)

    atexit.register, atexit.unregister = register_own, unregister_own


def install():
    _own_functions()
    exit_now = os._exit

    @functools.wraps(exit_now)
    def exit_rank(status):
        if not _ranks.in_rank():
            exit_now(status)
        raise Exit(status)

    os._exit = exit_rank


_NOT_OF_SCRIPT = (os.path.dirname(__file__) + os.sep, os.path.dirname(multiprocessing.__file__) + os.sep)


def _forget_frames_above_script(error):
    """A traceback begins where that of a process does."""
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename.startswith(_NOT_OF_SCRIPT):
        entry = entry.tb_next
    error.__traceback__ = entry or error.__traceback__


@contextlib.contextmanager
def as_of_process():
    """Around the code of a rank's script."""
    try:
        yield
    except BaseException as error:
        _forget_frames_above_script(error)
        if not isinstance(error, SystemExit) and sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, error.__traceback__)
        if not isinstance(error, Exit):
            _call_functions()
        raise
    else:
        _call_functions()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _call_functions():
    own = _ranks.current().at_exit
    while own:
        function, arguments, options = own.pop()
        try:
            function(*arguments, **options)
        except SystemExit:
            continue
        except BaseException:
            traceback.print_exc()
