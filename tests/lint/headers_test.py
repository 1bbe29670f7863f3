# SPDX-License-Identifier: BSD-3-Clause
"""headers.py <compiler>: finds a header that needs another one before it, whatever its templates."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

import headers

GOOD = "#include <vector>\ninline auto twice(std::vector<int> v) { v.resize(2 * v.size()); return v; }\n"
COMPILER = "c++"


class HeadersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "core/include").mkdir(parents=True)
        (self.root / "CMakeFiles/all_headers.dir").mkdir(parents=True)

    def check(self, end=f'static_assert(false, "{headers.END}");', **texts):
        """Checks headers, given by name and text. Returns the output and the exit code."""
        entries = []
        for name, text in texts.items():
            (self.root / f"core/include/{name}.h").write_text(text)
            source = self.root / f"{name}.cpp"
            source.write_text(f"#include <{name}.h>\n{end}\n")
            command = f"{COMPILER} -Icore/include -o CMakeFiles/all_headers.dir/{name}.o -c {source}"
            entries.append({"file": str(source), "command": command, "directory": str(self.root)})
        (self.root / "compile_commands.json").write_text(json.dumps(entries))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = headers.main(self.root, "all_headers", self.root)
        return out.getvalue(), code

    def test_headers_that_stand_alone(self):
        self.assertEqual(self.check(a=GOOD, b="struct B {};\n"), ("all_headers: 2 headers, 0 of them wrong\n", 0))

    def test_one_that_needs_an_include(self):
        out, code = self.check(a=GOOD, b="inline std::vector<int> none() { return {}; }\n")
        self.assertEqual(code, 1)
        self.assertIn("b.cpp:\n", out)
        self.assertIn("'vector' in namespace 'std' does not name", out)
        self.assertTrue(out.endswith("all_headers: 2 headers, 1 of them wrong\n"), out)

    def test_one_whose_template_does_not_parse(self):
        out, code = self.check(a="template <class T> T one() { return missing_function(); }\n")
        self.assertEqual(code, 1)
        self.assertIn("missing_function", out)

    def test_a_file_that_compiles_to_its_end_is_none_of_ours(self):
        out, code = self.check(end="", a=GOOD)
        self.assertEqual(code, 1)
        self.assertIn("did not come to the end of the header", out)

    def test_unchanged_headers_are_not_looked_at_again(self):
        self.check(a=GOOD)
        self.assertEqual(self.again(), ("all_headers: 1 headers, unchanged\n", 0))
        header = self.root / "core/include/a.h"
        header.write_text("std::string text;\n")
        os.utime(header, ns=(1, 1))
        self.assertEqual(self.again()[1], 1)
        self.assertEqual(self.again()[1], 1, "what is wrong is told each time")

    def again(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = headers.main(self.root, "all_headers", self.root)
        return out.getvalue(), code

    def test_a_target_that_is_not_there(self):
        (self.root / "compile_commands.json").write_text("[]")
        self.assertEqual(self.again()[1], 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv.pop()
    unittest.main()
