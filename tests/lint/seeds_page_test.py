# SPDX-License-Identifier: BSD-3-Clause
"""seeds_page.py finds rows that say something else than the sources, and rows that are missing."""

import pathlib
import tempfile
import unittest

import seeds_page

SOURCES = """
TEST(TestSingleProc, test_0) {
}
TEST_P(TestSingleProcOnRanks, test_0) {
}
TEST_F(Other, Case) {
}
"""


def section(class_name, rows):
    return f"## {class_name}\n\n| test | state | figures |\n|---|---|---|\n{rows}\n"


def planned(count, first=0):
    return "".join(f"| `test_{index}` | planned: more | |\n" for index in range(first, count))


class SeedsPageTest(unittest.TestCase):
    def findings(self, single="| `test_0` | test: `TestSingleProc.test_0` | 1 graph |\n" + planned(23, 1), more="",
                 works="| `more` | later |\n"):
        page = "".join(section(name, single if name == "TestSingleProc" else planned(count))
                       for name, count in seeds_page.SEEDS.items())
        page += f"{more}## What they wait for\n\n| piece of work | what it is |\n|---|---|\n{works}"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "tests").mkdir()
            (root / "docs/SEEDS.md").write_text(page)
            (root / "tests/a_test.cpp").write_text(SOURCES)
            return [line.removeprefix("docs/SEEDS.md: ") for line in seeds_page.findings(root)]

    def row(self, state):
        return self.findings(f"| `test_0` | {state} | |\n" + planned(23, 1))

    def test_a_true_page_is_silent(self):
        self.assertEqual(self.findings(), [])
        self.assertEqual(self.row("test: `TestSingleProc.test_0`, `TestSingleProcOnRanks.test_0`"), [])
        self.assertEqual(self.row("test: `TestSingleProcOnRanks.test_0`, `Other.Case`"), [])

    def test_a_test_that_is_not_there_is_found(self):
        self.assertEqual(self.row("test: `TestSingleProc.test_0`, `Other.Gone`"),
                         ["TestSingleProc.test_0 names Other.Gone, which is in no source file"])

    def test_a_row_without_a_test_of_its_name_is_found(self):
        for state in ("test:", "test: `Other.Case`"):
            self.assertEqual(self.row(state), ["TestSingleProc.test_0 names no test TestSingleProc.test_0"])

    def test_a_planned_test_that_is_there_is_found(self):
        self.assertEqual(self.findings(planned(23)), [
            "TestSingleProc.test_0 is planned, and TestSingleProc.test_0 is there",
            "TestSingleProc.test_0 is planned, and TestSingleProcOnRanks.test_0 is there"])

    def test_another_state_is_refused(self):
        self.assertEqual(self.row("soon"), ["TestSingleProc.test_0: its state must be `test: ` and tests, "
                                            "or `planned: ` and a piece of work"])

    def test_a_missing_and_a_double_row_are_found(self):
        one = "| `test_0` | test: `TestSingleProc.test_0` | |\n"
        self.assertEqual(self.findings(one + planned(22, 1)), ["TestSingleProc has 22 tests, and must have 23"])
        self.assertEqual(self.findings(one + one + planned(23, 1)), ["TestSingleProc.test_0 has two rows"])

    def test_the_explained_work_is_what_is_waited_for(self):
        self.assertEqual(self.findings(works=""), ["'more' is waited for, and is not explained"])
        self.assertEqual(self.findings(works="| `more` | later |\n| `done` | long ago |\n"),
                         ["'done' is explained, and nothing waits for it"])

    def test_82_tests_are_asked_for(self):
        self.assertEqual(sum(seeds_page.SEEDS.values()), 82)


if __name__ == "__main__":
    unittest.main()
