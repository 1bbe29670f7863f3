# SPDX-License-Identifier: BSD-3-Clause
"""seeds_page.py finds rows that disagree with the sources, and missing rows."""

import pathlib
import tempfile
import unittest

import seeds_page

SOURCES = """
#include "core/compile/seeds/seed_test.h"
TEST_F(TestSingleProc, test_0) {
}
TEST_F(TestSingleProcOnRanks, test_0) {
}
TEST_F(Other, Case) {
}
"""
BOTH = "test: `TestSingleProc.test_0`, `TestSingleProcOnRanks.test_0`"
RUNS = "fake / - / 1 / 1 <br> 1 2 8 / 0.3 MB / 3 / 1, 0; 1, 1"
TRUE_ROW = f"| `test_0` | {BOTH} | {RUNS} | Toy |\n"


def section(class_name, rows):
    return f"## {class_name}\n\n| test | state | runs | figures |\n|---|---|---|---|\n{rows}\n"


def planned(count, first=0):
    return "".join(f"| `test_{index}` | planned: more | | |\n" for index in range(first, count))


class SeedsPageTest(unittest.TestCase):
    def findings(self, single=TRUE_ROW + planned(23, 1), works="| `more` | later |\n", sources=SOURCES,
                 here="1 of 82 are here.\n"):
        page = here + "".join(section(name, single if name == "TestSingleProc" else planned(count))
                              for name, count in seeds_page.SEEDS.items())
        page += f"## What they wait for\n\n| piece of work | what it is |\n|---|---|\n{works}"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "tests").mkdir()
            (root / "docs/SEEDS.md").write_text(page)
            (root / "tests/a_test.cpp").write_text(sources)
            return [line.removeprefix("docs/SEEDS.md: ") for line in seeds_page.findings(root)]

    def row(self, state, runs=RUNS):
        return self.findings(f"| `test_0` | {state} | {runs} | |\n" + planned(23, 1))

    def test_a_true_page_is_silent(self):
        self.assertEqual(self.findings(), [])

    def test_a_test_that_is_not_there_is_found(self):
        self.assertEqual(self.row(f"{BOTH}, `TestSingleProc.test_1`", f"{RUNS} <br> 2 / - / 1 / 1"), [
            "TestSingleProc.test_0 names TestSingleProc.test_1, which is in no source file as a test of this seed"])

    def test_a_test_of_another_name_is_no_test_of_the_seed(self):
        self.assertEqual(self.row(f"{BOTH}, `Other.Case`", f"{RUNS} <br> 2 / - / 1 / 1"), [
            "TestSingleProc.test_0 names Other.Case, which is in no source file as a test of this seed"])

    def test_a_test_that_its_row_does_not_name_is_found(self):
        self.assertEqual(self.row("test: `TestSingleProc.test_0`", "2 / 25 MB / 3 / 1"),
                         ["TestSingleProc.test_0 does not name TestSingleProcOnRanks.test_0"])

    def test_a_test_of_no_row_is_found(self):
        self.assertEqual(self.findings(sources=SOURCES + "TEST_F(TestMultiProc, test_99) {\n}\n"),
                         ["TestMultiProc.test_99 is a test of no row of TestMultiProc"])

    def test_a_test_that_reads_no_row_is_found(self):
        told = ["TestSingleProc.test_0 is not a TEST_F of SeedTest, and so is not held to its row"]
        self.assertEqual(self.findings(sources=SOURCES.replace("F(TestSingleProc,", "P(TestSingleProc,")), told)
        self.assertEqual(self.findings(sources=SOURCES.replace("#include", "// ")),
                         told + [told[0].replace("SingleProc", "SingleProcOnRanks")])

    def test_a_run_for_each_test(self):
        self.assertEqual(self.row(BOTH, "2 / 25 MB / 3 / 1"), ["TestSingleProc.test_0 has 1 runs for 2 tests"])

    def test_a_run_that_no_test_could_read_is_found(self):
        for run in ("2 / 25 / 3 / 1", "two / - / 3 / 1", "2 / - / 3", "2 / - / 3 / 1,0", "2 / - / x / 1", ""):
            self.assertEqual(self.row(BOTH, f"fake / - / 1 / 1 <br> {run}"), [
                f"TestSingleProc.test_0: '{run}' is not a run: "
                "ranks or 'fake' / cap ('25 MB') or '-' / pieces / compiles"])

    def test_a_planned_test_that_is_there_is_found(self):
        self.assertEqual(self.findings(planned(23), here="0 of 82 are here\n"), [
            "TestSingleProc.test_0 is planned, and TestSingleProc.test_0 is there",
            "TestSingleProc.test_0 is planned, and TestSingleProcOnRanks.test_0 is there"])

    def test_a_planned_row_has_no_run(self):
        self.assertEqual(self.findings(TRUE_ROW + "| `test_1` | planned: more | 2 / - / 1 / 1 | |\n" + planned(23, 2)),
                         ["TestSingleProc.test_1 is planned, and has a run"])

    def test_another_state_is_refused(self):
        self.assertEqual(self.findings("| `test_0` | soon | | |\n" + planned(23, 1), here="0 of 82 are here\n"), [
            "TestSingleProc.test_0: its state must be `test: ` and tests, or `planned: ` and a piece of work"])

    def test_a_row_of_other_columns_is_found(self):
        self.assertEqual(self.findings(TRUE_ROW + "| `test_1` | planned: more | |\n" + planned(23, 2)),
                         ["TestSingleProc.test_1 has 3 columns, and must have 4"])

    def test_a_missing_and_a_double_row_are_found(self):
        self.assertEqual(self.findings(TRUE_ROW + planned(22, 1)),
                         ["TestSingleProc has 22 tests, and must have 23"])
        self.assertEqual(self.findings(TRUE_ROW + TRUE_ROW + planned(23, 1)), ["TestSingleProc.test_0 has two rows"])

    def test_the_number_of_rows_that_are_here_is_held(self):
        for here in ("Some.\n", "2 of 82 are here\n", "1 of 81 are here\n"):
            self.assertEqual(self.findings(here=here), ["it must say '1 of 82 are here'"])

    def test_the_explained_work_is_what_is_waited_for(self):
        self.assertEqual(self.findings(works=""), ["'more' is waited for, and is not explained"])
        self.assertEqual(self.findings(works="| `more` | later |\n| `done` | long ago |\n"),
                         ["'done' is explained, and nothing waits for it"])

    def test_82_tests_are_asked_for(self):
        self.assertEqual(sum(seeds_page.SEEDS.values()), 82)


if __name__ == "__main__":
    unittest.main()
