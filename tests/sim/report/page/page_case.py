# SPDX-License-Identifier: BSD-3-Clause
"""The common parts of page tests in a browser: where pages are, how to open one, and what must hold for each page."""

import json
import pathlib
import re
import subprocess
import types
import unittest

import browser

SKIPPED = 77  # ctest counts this as skipped

setting = types.SimpleNamespace(folder=None, browser=None)


def as_shown(text):
    """Ignores white space, which the browser arranges."""
    return re.sub(r"\s+", " ", text).strip()


def texts_in(data):
    """All texts in the data except keys."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from texts_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from texts_in(value)


def report_of(name):
    return json.loads((setting.folder / f"{name}.json").read_text(errors="replace"))


class PageTest(unittest.TestCase):
    width, mobile = 1280, False

    def setUp(self):
        self.page = setting.browser.page(self.width, 900, self.mobile)

    def tearDown(self):
        if self.name:
            self.assertEqual(self.page.problems(), [])
            self.assertEqual(self.page.requests(), [f"file://{setting.folder / self.name}.html"])
        self.page.close()

    name = None

    def open(self, name):
        self.name = name
        self.page.open(setting.folder / f"{name}.html")

    def range(self):
        self.page.frame()
        shown = self.page.value("({ ...document.querySelector('canvas').dataset })")
        return float(shown["from"]), float(shown["to"])

    def rows(self):
        self.page.frame()
        return int(self.page.value("document.querySelector('canvas').dataset.rows"))

    def chosen(self):
        return as_shown(self.page.text(".chosen"))


def run(module, samples, sources, folder, names):
    """Lets `samples` write the pages, and runs the module's tests, or only those in `names`. Returns the exit
    status."""
    if browser.program() is None:
        print(f"no browser: none of {', '.join(browser.NAMES)} is there; on Debian: apt-get install chromium")
        return SKIPPED
    setting.folder = pathlib.Path(folder).resolve()
    subprocess.run([samples, setting.folder, sources], check=True)
    with browser.Browser() as setting.browser:
        program = unittest.main(module, argv=["browser_test.py", *names], exit=False)
    return 0 if program.result.wasSuccessful() else 1
