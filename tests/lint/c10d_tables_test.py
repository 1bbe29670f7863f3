# SPDX-License-Identifier: BSD-3-Clause
"""c10d_tables.py finds a method without a row, a row without a method, and a row without an existing test."""

import pathlib
import tempfile
import unittest

import c10d_tables

HEADER = """
class TORCH_API {name} : public torch::CustomClassHolder {{
 public:
  virtual void send(
      int /* to */,
      int tag = 0) {{ TORCH_CHECK(false, c10::str("no ", getName())); }}
  // virtual void gone();
  virtual ~{name}() override;
  virtual bool ready() const = 0;
  bool plain() {{ return true; }}
{more}}};
class Other : public {name} {{ virtual void not_ours(); }};
"""


def document(rows):
    head = "| method | here | tested by |\n|---|---|---|\n"
    return "".join(f"## {name}\n\n{head}{rows}\n" for name in c10d_tables.CLASSES)


class TablesTest(unittest.TestCase):
    def findings(self, rows, more="", upstream="`Suite.Case`", operations="SEND = 0, RECV = 1, UNKNOWN = 100"):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            headers = root / "include/torch/csrc/distributed/c10d"
            headers.mkdir(parents=True)
            version = root / "include/torch/headeronly/version.h"
            version.parent.mkdir()
            version.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 13\n")
            for name in c10d_tables.CLASSES:
                added = more if name == "Work" else ""
                (headers / f"{name}.hpp").write_text(HEADER.format(name=name, more=added))
            with (headers / "Work.hpp").open("a") as header:
                header.write(f"enum class OpType : std::uint8_t {{ {operations} }};\n")
            table = root / "core/internal/rehearse_internal/comm/op_table.h"
            table.parent.mkdir(parents=True)
            table.write_text('OpRow{OpType::SEND, "send"},\nOpRow{OpType::RECV, "recv"},\n')
            (root / "docs").mkdir()
            (root / "tests").mkdir()
            (root / "docs/C10D.md").write_text(document(rows))
            (root / "tests/README.md").write_text(f"## PyTorch's own C++ tests\n\n| `A.b` | {upstream} |\n")
            (root / "tests/a_test.cpp").write_text("TEST_F(Suite, Case) {\n}\n")
            return list(c10d_tables.findings(root, root / "include"))

    GOOD = "| `send` | | `Suite.Case` |\n| `ready` | yes | `Suite.Case` |\n"

    def test_complete_tables_are_silent(self):
        self.assertEqual(self.findings(self.GOOD), [])

    def test_new_method_is_found(self):
        found = self.findings(self.GOOD, more="  virtual void brand_new();\n")
        self.assertEqual(found, ["docs/C10D.md: Work::brand_new is declared in Work.hpp and is in no row"])

    def test_row_without_method_is_found(self):
        found = self.findings(self.GOOD + "| `gone` | | `Suite.Case` |\n")
        self.assertEqual(len(found), len(c10d_tables.CLASSES))
        self.assertIn("Backend::gone has a row and is not declared", found[0])

    def test_rows_hold_since_their_version(self):
        row = "| `brand_new` since 2.{} | | `Suite.Case` |\n"
        self.assertEqual(self.findings(self.GOOD + row.format(14)), [])
        found = self.findings(self.GOOD + row.format(13))
        self.assertIn("Backend::brand_new has a row and is not declared", found[0])
        with self.assertRaises(ValueError):
            self.findings(self.GOOD + "| `brand_new` of late | | `Suite.Case` |\n")

    def test_row_without_test_is_found(self):
        found = self.findings(self.GOOD.replace("`Suite.Case`", "`Suite.Missing`", 1))
        self.assertIn("names Suite.Missing, which is in no source file", found[0])
        found = self.findings(self.GOOD.replace("`Suite.Case`", "", 1))
        self.assertIn("names no test", found[0])

    def test_new_operation_is_found(self):
        found = self.findings(self.GOOD, operations="SEND = 0, RECV = 1, PERMUTE = 2, UNKNOWN = 100")
        self.assertEqual(found, ["core/internal/rehearse_internal/comm/op_table.h: OpType::PERMUTE is declared in "
                                 "Work.hpp and has no row"])

    def test_upstream_case_without_test_is_found(self):
        self.assertEqual(self.findings(self.GOOD, upstream="later"), ["tests/README.md: `A.b` names no test"])


if __name__ == "__main__":
    unittest.main()
