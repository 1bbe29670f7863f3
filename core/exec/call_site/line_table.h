// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Dwfl;
struct Dwfl_Module;

namespace rehearse::exec {

// A function at an address. It has a mangled name, or, where the compiler gave it none, a qualified one.
struct SourceFrame {
  std::string mangled;
  std::string qualified;
  std::string file;  // empty without a line table
  int line = 0;
  std::string unit;  // the source file that the compiler was given; empty without debug information
};

// Symbol and line tables of one loaded file, read with elfutils when first asked. Not thread safe.
class LineTable {
 public:
  // `bias`: what was added to the file's addresses when it was loaded. A file that cannot be read knows
  // nothing.
  LineTable(const std::string& path, std::uintptr_t bias);
  LineTable(const LineTable&) = delete;
  LineTable& operator=(const LineTable&) = delete;
  ~LineTable();

  // The functions at `address`, innermost first, those that were inlined too. Empty when nothing is known.
  std::vector<SourceFrame> lookup(std::uintptr_t address) const;

 private:
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
};

}  // namespace rehearse::exec
