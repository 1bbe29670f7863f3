# SPDX-License-Identifier: BSD-3-Clause
"""The plugin for pytest: `@pytest.mark.rehearse(ranks=4, seeds=20)` runs a test on every rank of a world.

Ranks need a process in which Rehearse is preloaded, so pytest starts again once, when it has collected such a test.
"""

import os
import sys

import pytest

_LINES_OF_REPORT = 12


def pytest_addoption(parser):
    text = "how many seeds a test with @pytest.mark.rehearse tries, instead of its `seeds`"
    parser.getgroup("rehearse").addoption("--rehearse-seeds", type=int, metavar="N", help=text)


def pytest_configure(config):
    text = "rehearse(ranks=2, seeds=1, **options): run the test on every rank, with each of the seeds 1..seeds"
    config.addinivalue_line("markers", text)
    if getattr(config.option, "numprocesses", None):  # pytest-xdist: its workers run the tests
        from rehearse import _launch

        os.environ.update(_launch.environ_of_preloaded(dict(os.environ)))


# Where nothing is preloaded, pytest is replaced by one where it is. What it has printed is there already.
def pytest_collection_finish(session):
    if not any(item.get_closest_marker("rehearse") for item in session.items):
        return
    from rehearse import _launch

    if _launch.is_preloaded():
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    print("\nrehearse: pytest starts again, with Rehearse preloaded", flush=True)
    environ = _launch.environ_of_preloaded(dict(os.environ))
    os.execve(sys.executable, sys.orig_argv, environ)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    marker = pyfuncitem.get_closest_marker("rehearse")
    if marker is None:
        return None
    import rehearse

    options = dict(marker.kwargs)
    seeds = pyfuncitem.config.getoption("--rehearse-seeds") or options.pop("seeds", 1)
    options.pop("seeds", None)
    names = pyfuncitem._fixtureinfo.argnames
    fixtures = {name: pyfuncitem.funcargs[name] for name in names}
    function = pyfuncitem.obj
    for seed in range(1, seeds + 1):
        report = rehearse.run(lambda: function(**fixtures), seed=seed, check=False, **options)
        if report.verdict != "OK":
            lines = report.text.splitlines()
            more = [f"... {len(lines) - _LINES_OF_REPORT} more lines"] if len(lines) > _LINES_OF_REPORT else []
            pytest.fail("\n".join([f"seed {seed}:", *lines[:_LINES_OF_REPORT], *more]), pytrace=False)
    return True
