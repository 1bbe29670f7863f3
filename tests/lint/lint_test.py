# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of lint.py finds the one offence planted for it, and nothing in a clean tree."""

import pathlib
import tempfile
import unittest

import lint

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "// SPDX-License-Identifier: BSD-3-Clause\n"


def findings(check, tree):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in (".clang-format", ".venv"):
            (root / name).symlink_to(PROJECT / name)
        for name, text in tree.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return list(lint.CHECKS[check](root, lint.tracked_files(root)))


class LintTest(unittest.TestCase):
    def expect_one(self, check, tree, words):
        found = findings(check, tree)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_clean_tree_is_silent(self):
        tree = {"core/exec/a.cpp": SPDX + "#include <rehearse/exec/a.h>\n// std::chrono::steady_clock::now() is not used\n",
                "sim/b.cpp": SPDX + "#include <ATen/ATen.h>\n#include <rehearse/fakes/f.h>\n"}
        for check in lint.CHECKS:
            self.assertEqual(findings(check, tree), [])

    def test_core_must_not_include_sim(self):
        self.expect_one("includes", {"core/job/a.h": SPDX + "#include <rehearse/sim/world.h>\n"}, "core/job/a.h:2")

    def test_fakes_must_not_include_private_sim_header(self):
        self.expect_one("includes", {"sim/world.h": SPDX, "sim/cli/run.h": SPDX,
                                     "fakes/a.cpp": SPDX + '#include "cli/run.h"\n'}, "of sim")

    def test_rooms_of_comm_include_what_comes_before_them(self):
        for path, included in (("core/comm/matcher/a.cpp", '"comm/group/b.h"'),
                               ("core/comm/work/a.cpp", "<rehearse/comm/communicators.h>"),
                               ("core/include/rehearse/comm/pending.h", "<rehearse/comm/rank_backend.h>"),
                               ("core/comm/call/a.h", "<rehearse/comm/event_log.h>")):
            self.expect_one("includes", {path: SPDX + f"#include {included}\n"}, "the order is call <- record")
        for path, included in (("core/comm/group/a.cpp", '"comm/matcher/b.h"'),
                               ("core/comm/record/a.cpp", "<rehearse/comm/operation.h>"),
                               ("core/comm/collectives/a.cpp", "<rehearse/comm/functional.h>"),
                               ("sim/world/a.cpp", "<rehearse/comm/communicators.h>")):
            self.assertEqual(findings("includes", {path: SPDX + f"#include {included}\n"}), [])

    def test_calls_know_no_executor(self):
        self.expect_one("includes", {"core/comm/call/a.cpp": SPDX + "#include <rehearse/exec/executor.h>\n"}, "of exec")
        self.expect_one("includes", {"core/comm/call/a.cpp": SPDX + '#include "exec/prefetch.h"\n'}, "of exec")

    def test_exec_must_not_include_libtorch(self):
        self.expect_one("includes", {"core/exec/a.cpp": SPDX + "#include <c10/util/Exception.h>\n"}, "free of LibTorch")
        self.assertEqual(findings("includes", {"core/exec/torch_state/a.cpp": SPDX + "#include <ATen/ATen.h>\n"}), [])

    def test_only_sim_gtest_includes_googletest(self):
        self.expect_one("includes", {"sim/a.cpp": SPDX + "#include <gtest/gtest.h>\n"}, "GoogleTest")
        self.assertEqual(findings("includes", {"sim/gtest/a.cpp": SPDX + "#include <gtest/gtest.h>\n"}), [])

    def test_no_header_includes_all_of_torch(self):
        self.expect_one("includes", {"tests/sim/a.h": SPDX + "#include <torch/torch.h>\n"}, "torch/torch.h")

    def test_format(self):
        self.expect_one("format", {"core/a.cpp": SPDX + "int  a;\n", "core/b.cpp": SPDX + "int b;\n"}, "core/a.cpp:2")

    def test_format_by_another_version(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / ".clang-format").write_text("# clang-format 1.2.3\nBasedOnStyle: Google\n")
            found = list(lint.check_format(root, []))
            self.assertEqual(found, [".venv/bin/clang-format:1: is not there: ./dev format gets clang-format 1.2.3"])
            (root / ".venv").symlink_to(PROJECT / ".venv")
            (found,) = lint.check_format(root, [])
            self.assertIn("./dev format gets clang-format 1.2.3", found)

    def test_licence_line(self):
        self.expect_one("files", {"core/a.cpp": "int a;\n"}, "SPDX")

    def test_file_length(self):
        self.expect_one("files", {"core/a.cpp": SPDX + "int a;\n" * lint.LINES_MAX}, "401 lines")

    def test_leftovers_and_disabled_tests(self):
        self.expect_one("files", {"core/a.cpp": SPDX + "// TO" "DO: more\n"}, "a.cpp:2")
        self.expect_one("files", {"tests/a.cpp": SPDX + "TEST(A, DISABLED" "_B) {}\n"}, "a.cpp:2")

    def test_machine_paths(self):
        self.expect_one("files", {"README.md": "see /ho" "me/me/x\n"}, "README.md:1")

    def test_real_time(self):
        for line in ("auto t = std::chrono::steady_clock::now();", "std::this_thread::sleep_for(1s);",
                     "boost::this_fiber::sleep_until(t);"):
            self.expect_one("banned", {"fakes/a.cpp": SPDX + line + "\n"}, "clock")
        self.assertEqual(findings("banned", {"tests/bench/a.cpp": SPDX + "std::this_thread::sleep_for(1s);\n"}), [])

    def test_state_of_fibers(self):
        line = "thread_local int depth = 0;"
        for path in ("core/shapes/a.cpp", "core/capture/fake/a.cpp", "core/compile/a.h", "core/include/rehearse/capture/a.h"):
            self.expect_one("banned", {path: SPDX + line + "\n"}, "exec::FiberLocal")
        self.assertEqual(findings("banned", {"core/exec/a.cpp": SPDX + line + "\n",
                                             "core/shapes/a.cpp": SPDX + "// no " + line + "\n"}), [])


if __name__ == "__main__":
    unittest.main()
