# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of lint.py finds the one offence planted for it, and nothing in a clean tree."""

import pathlib
import tempfile
import unittest
import unittest.mock

import classes
import lint
import rooms

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
        unused = "// std::chrono::steady_clock::now() is not used\n"
        tree = {"core/exec/a.cpp": SPDX + "#include <rehearse/exec/a.h>\n" + unused,
                "sim/b.cpp": SPDX + "#include <ATen/ATen.h>\n#include <rehearse/fakes/f.h>\n"}
        for check in lint.CHECKS:
            self.assertEqual(findings(check, tree), [])

    def test_core_must_not_include_sim(self):
        self.expect_one("includes", {"core/job/a.h": SPDX + "#include <rehearse/sim/world.h>\n"}, "core/job/a.h:2")

    def test_fakes_must_not_include_private_sim_header(self):
        self.expect_one("includes", {"sim/world.h": SPDX, "sim/cli/run.h": SPDX,
                                     "fakes/a.cpp": SPDX + '#include "cli/run.h"\n'}, "of sim")

    def test_libraries_include_what_they_link(self):
        for path, included, words in (
                ("core/comm/work/a.cpp", "<rehearse_internal/capture/fake_mode.h>", "library core must link without"),
                ("core/include/rehearse/job/a.h", "<rehearse/compile/compile.h>", "the library core must link without"),
                ("core/parallel/a.cpp", '"parallel/splitter/b.h"', "without compile"),
                ("core/graph/run/a.cpp", "<rehearse/graph/exported_program.h>", "without pt2"),
                ("sim/world/a.cpp", "<rehearse/graph/graph.h>", "sim, fakes and real must link without compile"),
                ("fakes/a.cpp", "<rehearse/elastic/run.h>", "sim, fakes and real must link without elastic")):
            found = findings("includes", {path: SPDX + f"#include {included}\n"})
            self.assertTrue(any(words in line for line in found), (path, found))
        for path, included in (("sim/cli/split/a.cpp", "<rehearse/graph/exported_program.h>"),
                               ("core/compile/a.cpp", "<rehearse/job/rank_context.h>"),
                               ("core/graph/a.cpp", "<rehearse_internal/hash/fnv1a.h>"),
                               ("sim/world/a.cpp", "<rehearse_internal/job/compile_journal.h>"),
                               ("tests/sim/a.cpp", "<rehearse/compile/compile.h>")):
            self.assertEqual(findings("includes", {path: SPDX + f"#include {included}\n"}), [])

    def test_rooms_of_comm_include_what_comes_before_them(self):
        for path, included in (("core/comm/matcher/a.cpp", '"comm/group/b.h"'),
                               ("core/comm/work/a.cpp", "<rehearse/comm/communicators.h>"),
                               ("core/include/rehearse/comm/pending.h", "<rehearse/comm/rank_backend.h>"),
                               ("core/comm/call/a.h", "<rehearse/comm/event_log.h>")):
            self.expect_one("includes", {path: SPDX + f"#include {included}\n"}, "of core/comm includes")
        for path, included in (("core/comm/group/a.cpp", '"comm/matcher/b.h"'),
                               ("core/comm/record/a.cpp", "<rehearse/comm/operation.h>"),
                               ("core/comm/collectives/a.cpp", "<rehearse/comm/functional.h>"),
                               ("sim/world/a.cpp", "<rehearse/comm/communicators.h>")):
            self.assertEqual(findings("includes", {path: SPDX + f"#include {included}\n"}), [])

    def test_rooms_inside_houses(self):
        for path, included, words in (
                ("core/graph/passes/a.cpp", '"graph/run/b.h"', "room passes of core/graph includes graph/run/b.h of"),
                ("core/graph/passes/a.cpp", "<rehearse/graph/interpreter.h>", "of run; it may include ir"),
                ("core/include/rehearse/graph/split.h", "<rehearse/graph/interpreter.h>", "of run"),
                ("core/graph/ir/a.cpp", "<rehearse/graph/text.h>", "of text; it may include none"),
                ("core/graph/run/a.h", "<rehearse/graph/split.h>", "of passes"),
                ("core/graph/run/a.cpp", '"graph/run/steps/b.h"', "of run/steps; it may include ir, run/call"),
                ("core/capture/fake/a.cpp", '"capture/trace/b.h"', "of trace"),
                ("core/capture/graph/a.cpp", "<rehearse/capture/fake_mode.h>", "of fake/call"),
                ("core/capture/fake/infer/a.cpp", '"capture/fake/rules/b.h"',
                 "of fake/rules; it may include fake/call"),
                ("core/capture/trace/caller/a.cpp", '"capture/trace/tracer.h"', "of trace; it may include none"),
                ("core/capture/joint/a.cpp", "<rehearse/capture/forward_capture.h>", "of trace"),
                ("core/capture/trace/a.cpp", '"capture/joint/b.h"', "of joint"),
                ("core/compile/compiler_collectives/a.cpp", '"compile/entry.h"',
                 "of .; it may include arguments"),
                ("core/compile/aot/a.cpp", "<rehearse/compile/compile.h>", "of ."),
                ("core/compile/aot/a.cpp", '"compile/compiler_collectives/b.h"', "of compiler_collectives"),
                ("core/compile/captures/a.h", '"compile/entry.h"', "of ."),
                ("core/compile/segments/a.cpp", '"compile/captures/b.h"', "of captures"),
                ("core/shapes/expr/a.cpp", "<rehearse/shapes/shape_env.h>", "of env; it may include none"),
                ("sim/schedule/a.cpp", '"world/simulation.h"', "room schedule of sim includes"),
                ("sim/include/rehearse/sim/seed.h", "<rehearse/sim/world.h>", "of world"),
                ("sim/network/a.cpp", '"compute/b.h"', "of compute"),
                ("sim/world/a.cpp", '"run/attempt.h"', "of run"),
                ("sim/report/writers/a.cpp", '"report/diagnosis/b.h"', "room report/writers of sim includes"),
                ("sim/report/diagnosis/a.cpp", '"world/simulation.h"', "of world"),
                ("sim/record/a.cpp", '"report/ranks/places.h"', "of report/ranks"),
                ("sim/cli/death/a.cpp", '"cli/sweep/worker.h"', "room cli/death of sim includes"),
                ("sim/cli/grammar/a.cpp", '"cli/job.h"', "of cli; it may include"),
                ("sim/cli/split/a.cpp", '"cli/sweep/worker.h"', "of cli/sweep"),
                ("sim/run/a.cpp", "<rehearse/sim/scenario.h>", "of scenario"),
                ("sim/scenario/a.cpp", '"cli/grammar/help.h"', "of cli"),
                ("sim/gtest/a.cpp", '"cli/grammar/help.h"', "of cli")):
            self.expect_one("includes", {path: SPDX + f"#include {included}\n"}, words)

    def test_rooms_include_those_before_them(self):
        for path, included in (("core/graph/pt2/a.cpp", '"graph/text/b.h"'),
                               ("core/graph/run/a.cpp", '"graph/ir/b.h"'),
                               ("core/graph/run/steps/a.cpp", '"graph/run/b.h"'),
                               ("core/capture/trace/a.cpp", '"capture/fake/b.h"'),
                               ("core/capture/graph/a.cpp", "<rehearse/capture/errors.h>"),
                               ("core/compile/captures/a.cpp", '"compile/segments/b.h"'),
                               ("core/compile/a.cpp", '"compile/compiler_collectives/b.h"'),
                               ("core/compile/aot/a.cpp", "<rehearse/compile/backend.h>"),
                               ("core/shapes/env/a.cpp", '"shapes/expr/b.h"'),
                               ("core/compile/a.cpp", '"graph/run/b.h"'),
                               ("sim/cli/a.cpp", '"run/attempt.h"'), ("sim/scenario/a.cpp", '"run/run_files.h"'),
                               ("sim/cli/sweep/a.cpp", '"report/writers/text_lines.h"'),
                               ("sim/cli/sweep/a.cpp", '"cli/job.h"'), ("sim/run/a.cpp", '"world/b.h"')):
            self.assertEqual(findings("includes", {path: SPDX + f"#include {included}\n"}), [])

    def test_an_exception_holds_for_its_file_while_it_is_needed(self):
        against = '#include "shapes/env/b.h"\n'
        of_file = (("core/shapes/expr/a.cpp", "shapes/env/b.h", "a reason"),)
        with unittest.mock.patch.object(rooms, "EXCEPTIONS", of_file):
            self.assertEqual(findings("includes", {"core/shapes/expr/a.cpp": SPDX + against}), [])
            self.expect_one("includes", {"core/shapes/expr/a.cpp": SPDX}, "take it out of EXCEPTIONS")
        self.expect_one("includes", {"core/shapes/expr/a.cpp": SPDX + against}, "of env")
        of_folder = (("core/shapes/expr/", "shapes/env/b.h", "a reason"),)
        with unittest.mock.patch.object(rooms, "EXCEPTIONS", of_folder):
            folder = {"core/shapes/expr/a.h": SPDX + '#include "shapes/env/b.h"\n', "core/shapes/expr/b.h": SPDX}
            self.assertEqual(findings("includes", folder), [])

    def test_every_header_named_is_there(self):
        for house in rooms.HOUSES:
            root = PROJECT / house.folder.split("/")[0]
            folders = (root / "include" / house.prefix,
                       root / "internal" / house.prefix.replace("rehearse/", "rehearse_internal/"))
            for header in (header for headers in house.headers.values() for header in headers):
                self.assertTrue(any((folder / header).is_file() for folder in folders),
                                f"{house.prefix}{header} of tests/lint/rooms.py")

    def test_internal_headers_belong_to_the_rooms_of_public_ones(self):
        for path, included, words in (
                ("core/comm/work/a.cpp", "<rehearse_internal/comm/communicators.h>", "of core/comm includes"),
                ("core/internal/rehearse_internal/comm/pending.h", "<rehearse/comm/rank_backend.h>", "of core/comm"),
                ("core/comm/call/a.cpp", "<rehearse_internal/exec/executor.h>", "of exec"),
                ("core/job/a.cpp", "<rehearse_internal/sim/oracles.h>", "of sim"),
                ("core/internal/rehearse_internal/exec/a.h", "<c10/util/Exception.h>", "free of LibTorch")):
            self.expect_one("includes", {path: SPDX + f"#include {included}\n"}, words)
        self.assertEqual(findings("includes", {
            "core/comm/group/a.cpp": SPDX + "#include <rehearse_internal/comm/operation.h>\n",
            "sim/world/a.cpp": SPDX + "#include <rehearse_internal/fakes/fake_fabric.h>\n"}), [])

    def test_calls_know_no_executor(self):
        self.expect_one("includes", {"core/comm/call/a.cpp": SPDX + "#include <rehearse/exec/executor.h>\n"}, "of exec")
        self.expect_one("includes", {"core/comm/call/a.cpp": SPDX + '#include "exec/fiber/prefetch.h"\n'}, "of exec")

    def test_exec_must_not_include_libtorch(self):
        self.expect_one("includes", {"core/exec/a.cpp": SPDX + "#include <c10/util/Exception.h>\n"}, "free of LibTorch")

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

    def test_width(self):
        wide = "// " + "a" * lint.WIDTH_MAX + "\n"
        self.expect_one("files", {"core/a.cpp": SPDX + wide}, "core/a.cpp:2: 123 columns")
        self.expect_one("files", {"tests/a.py": "#" + wide}, "tests/a.py:1: 124 columns")
        exact = "//" + "\u00e9" * (lint.WIDTH_MAX - 2) + "\n"
        self.assertEqual(findings("files", {"core/a.cpp": SPDX + exact + f'auto a = R"({wide})";\n'}), [])

    def test_function_length(self):
        body = "  call();\n" * (lint.FUNCTION_LINES_MAX - 1)
        for head, name in (("void A::b(int c)", "A::b"), ("TEST_F(A, B)", "TEST_F(A, B)"),
                           ("A::A() : b_{1}, c_(2)", "A::A"), ("bool A::operator==(const A& o) const", "operator=="),
                           ("template <class T = int>\nauto f(T) -> std::vector<T>", "f")):
            line = 4 + head.count("\n")
            tree = {"core/a.cpp": f"{SPDX}\nnamespace a {{\n{head} {{\n{body}}}\n}}\n"}
            self.expect_one("functions", tree, f"core/a.cpp:{line}: {name} has 71 lines; the limit is 70")
            tree = {"core/a.cpp": f"{SPDX}\nnamespace a {{\n{head} {{\n{body[10:]}}}\n}}\n"}
            self.assertEqual(findings("functions", tree), [])
        method = f"class A : public B {{\n  int c() const override {{\n{body}  }}\n}};\n"
        self.expect_one("functions", {"core/a.h": method}, "core/a.h:2: c has 71 lines")
        in_table = f"const Table kTable = {{\n  {{1, [](int) {{\n{body}  }}}},\n}};\n"
        self.expect_one("functions", {"core/a.cpp": in_table}, "core/a.cpp:2: a lambda has 71 lines")

    def test_what_is_no_function_may_be_long(self):
        rows = "  {1, 2},\n" * 2 * lint.FUNCTION_LINES_MAX
        members = "  int call(int);\n" * 2 * lint.FUNCTION_LINES_MAX
        for text in (f"constexpr Row kRows[] = {{\n{rows}}};\n", f"class A {{\n{members}}};\n",
                     f"INSTANTIATE_TEST_SUITE_P(A, B, Values(Rows{{\n{rows}}}));\n",
                     f"template <class A = int>\nstruct B {{\n{members}}};\n",
                     "#define A { \\\n  {\nvoid f() { g('{', \"{\", R\"x({)x\", 1'000); /* { */ }  // {\n"):
            self.assertEqual(findings("functions", {"core/a.cpp": text}), [])

    def test_braces_that_do_not_balance_are_found(self):
        self.expect_one("functions", {"core/a.cpp": "void f() {\n"}, "1 braces are not closed")
        self.expect_one("functions", {"core/a.cpp": "void f() {}\n}\n"}, "line 2: a closing brace without")

    def test_class_size(self):
        def method(of, number):
            return f"int {of}::method_{number}() const {{ return {number}; }}\n"

        def file(of, first, count):
            return SPDX + "".join(method(of, number) for number in range(first, first + count))

        limit = classes.METHODS_MAX
        self.assertEqual(findings("classes", {"core/a.cpp": file("A::Impl", 0, limit - 1),
                                              "core/b.cpp": file("A::Impl", limit, 1) + file("B", 0, limit)}), [])
        self.expect_one("classes", {"core/a.cpp": file("A::Impl", 0, limit), "core/b.cpp": file("A::Impl", limit, 1)},
                        "core/a.cpp:1: A::Impl has 31 methods in 2 .cpp files; the limit is 30 in 2")
        self.expect_one("classes", {f"sim/{name}.cpp": file("A", 0, 1) for name in "abc"}, "A has 3 methods in 3 .cpp")
        for elsewhere in ({"tests/a.cpp": file("A", 0, 2 * limit)},  # not a house
                          {"core/a.cpp": file("A", 0, limit), "sim/a.cpp": file("A", 0, limit)},  # another class
                          {f"core/{name}.cpp": SPDX + "[[gnu::used]] int a() { return A::b(); }\n" for name in "abc"},
                          {"core/a.cpp": SPDX + ("// " + method("A", 0)) * 2 * limit}):
            self.assertEqual(findings("classes", elsewhere), [])

    def test_a_larger_class_may_shrink_only(self):
        larger = {"A": classes.Larger("core/job/", 4, 3, "a reason")}
        method = "int A::method() { return 0; }\n"
        tree = {f"core/job/{name}.cpp": SPDX + method for name in "abc"}
        with unittest.mock.patch.object(classes, "LARGER", larger):
            self.assertEqual(findings("classes", tree), [])
            self.expect_one("classes", tree | {"core/job/c.cpp": SPDX + 3 * method}, "A has 5 methods in 3 .cpp files; "
                            "the limit is 4 in 3")
            self.expect_one("classes", {"core/job/a.cpp": SPDX + method}, "core/job/:1: A is not larger than other")
            elsewhere = {f"core/{name}.cpp": SPDX + method for name in "abc"}
            self.expect_one("classes", elsewhere, "the limit is 30 in 2")

    def test_pages_name_what_is_there(self):
        there = {"core/comm/call/a.cpp": SPDX, "core/comm/b_rules.cpp": SPDX}
        text = "`core/comm`, `core/comm/call/a.cpp`, `core/comm/*_rules.cpp`, `build/release`, `a/b`, `c10d::Work`\n"
        self.assertEqual(findings("pages", there | {"docs/CONTRIBUTING.md": text}), [])
        for gone in ("core/comm/a.cpp", "core/com", "core/comm/*_cases.cpp", "docs/X.md"):
            self.expect_one("pages", there | {"docs/ARCHITECTURE.md": text + f"see `{gone}`\n"}, f"md:2: {gone} is not")

    def test_public_headers_are_those_that_users_reach(self):
        core = "core/include/rehearse/"
        tree = {"README.md": "```cpp\n#include <rehearse/a/named.h>\n```\n",
                "docs/GUIDE.md": "`call()` (`<rehearse/b/described.h>`)\n",
                "docs/examples/job/job.cpp": SPDX + "#include <rehearse/sim/used.h>\n",
                "core/cmake/RehearseProgram.cmake": 'set(text "#include <rehearse/b/written.h>")\n',
                core + "a/named.h": SPDX + "#include <rehearse/a/included.h>\n",
                core + "a/included.h": SPDX, core + "b/described.h": SPDX, core + "b/written.h": SPDX,
                "sim/include/rehearse/sim/used.h": SPDX,
                "core/internal/rehearse_internal/a/inner.h": SPDX + "#include <rehearse/a/named.h>\n"}
        self.assertEqual(findings("public", tree), [])
        stray = {core + "a/stray.h": SPDX}
        self.expect_one("public", tree | stray, "core/include/rehearse/a/stray.h:1: neither README")
        self.expect_one("public", tree | stray, "move it to core/internal/rehearse_internal/a/stray.h")
        for path in ("docs/CONTRIBUTING.md", "docs/decisions/0001.md", "sim/a.cpp", "tests/a_test.cpp"):
            self.expect_one("public", tree | stray | {path: "#include <rehearse/a/stray.h>\n"}, "a/stray.h:1")
        only_commented = {core + "a/included.h": SPDX + "// #include <rehearse/a/stray.h>\n"}
        self.expect_one("public", tree | stray | only_commented, "a/stray.h:1")
        inner = {core + "a/included.h": SPDX + "#include <rehearse_internal/a/inner.h>\n"}
        self.expect_one("public", tree | inner, "a/included.h:2: a public header includes")

    def test_pages_name_headers_that_users_can_include(self):
        there = {"core/internal/rehearse_internal/a/inner.h": SPDX}
        self.expect_one("public", there | {"docs/GUIDE.md": "see\n`<rehearse_internal/a/inner.h>`\n"}, "GUIDE.md:2")
        self.expect_one("public", there | {"README.md": "#include <rehearse/a/inner.h>\n"}, "there is no public header")
        self.assertEqual(findings("public", there | {"docs/ARCHITECTURE.md": "`<rehearse/AREA/x.h>`\n"}), [])

    def test_scripts_of_pages_make_no_markup_and_load_nothing(self):
        licence = "// SPDX-License-Identifier: BSD-3-Clause\n"
        for line, words in (("element.innerHTML = text;", "innerHTML"), ("fetch(\"a\");", "fetch"),
                            ("if (a == b) go();", "=="), ("const a = 'https://a.org';", "https://"),
                            ("const a = \"\u00e9\";", "ASCII"), ("//" + "x" * 119, "121 columns")):
            self.expect_one("scripts", {"sim/a.js": licence + line + "\n"}, words)
        style = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
        self.expect_one("scripts", {"sim/a.css": style + "a { background: url(b.png); }\n"}, "url(")
        self.expect_one("scripts", {"sim/a.css": "a {}\n"}, "the first line")
        self.expect_one("scripts", {"sim/a.js": licence + "let a;\n" * 400}, "401 lines")
        fits = "  f(a) {\n" + "    go();\n" * 38 + "  }\n"
        self.assertEqual(findings("scripts", {"sim/a.js": licence + "class A {\n" + fits + fits + "}\n"}), [])
        self.expect_one("scripts", {"sim/a.js": licence + fits.replace("go", "go();\n    go", 1)}, "f has 41 lines")

    def test_leftovers_and_disabled_tests(self):
        self.expect_one("files", {"core/a.cpp": SPDX + "// TO" "DO: more\n"}, "a.cpp:2")
        self.expect_one("files", {"tests/a.cpp": SPDX + "TEST(A, DISABLED" "_B) {}\n"}, "a.cpp:2")
        self.expect_one("files", {"sim/a.js": "// TO" "DO: more\n"}, "a.js:1")

    def test_machine_paths(self):
        self.expect_one("files", {"README.md": "see /ho" "me/me/x\n"}, "README.md:1")

    def test_real_time(self):
        for line in ("auto t = std::chrono::steady_clock::now();", "std::this_thread::sleep_for(1s);",
                     "boost::this_fiber::sleep_until(t);"):
            self.expect_one("banned", {"fakes/a.cpp": SPDX + line + "\n"}, "clock")
        self.assertEqual(findings("banned", {"tests/bench/a.cpp": SPDX + "std::this_thread::sleep_for(1s);\n"}), [])

    def test_version_of_libtorch(self):
        for line in ("#if TORCH_VERSION_MINOR > 11", "#include <torch/version.h>", "auto v = TORCH_ABI_VERSION;"):
            self.expect_one("banned", {"tests/real/a.cpp": SPDX + line + "\n"}, "libtorch/version.h")
        path = "core/internal/rehearse_internal/libtorch/version.h"
        self.assertEqual(findings("banned", {path: SPDX + "#include <torch/headeronly/version.h>\n"}), [])

    def test_state_of_fibers(self):
        line = "thread_local int depth = 0;"
        for path in ("core/shapes/a.cpp", "core/capture/fake/a.cpp", "core/compile/a.h",
                     "core/include/rehearse/capture/a.h", "core/internal/rehearse_internal/compile/a.h"):
            self.expect_one("banned", {path: SPDX + line + "\n"}, "exec::FiberLocal")
        self.assertEqual(findings("banned", {"core/exec/a.cpp": SPDX + line + "\n",
                                             "core/shapes/a.cpp": SPDX + "// no " + line + "\n"}), [])


if __name__ == "__main__":
    unittest.main()
