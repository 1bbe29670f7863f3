// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

struct Dwfl;
struct Dwfl_Module;

namespace rehearse::exec {

// A function at an address. If the debug information does not give its mangled name, it has a qualified name. Its
// mangled name is then from the symbol table, or empty.
struct SourceFrame {
  std::string mangled;
  std::string qualified;
  std::string file;  // empty without a line table
  int line = 0;
  std::string unit;  // the source file passed to the compiler; empty without debug information
};

// Symbol and line tables of one loaded file, read with elfutils on demand. Not thread safe.
class LineTable {
 public:
  // `bias`: the difference between loaded addresses and those in the file. If the file cannot be read, lookups find
  // nothing.
  LineTable(const std::string& path, std::uintptr_t bias);
  LineTable(const LineTable&) = delete;
  LineTable& operator=(const LineTable&) = delete;
  ~LineTable();

  // The functions at `address`, innermost first, including inlined ones. Empty if nothing is known.
  std::vector<SourceFrame> lookup(std::uintptr_t address) const;

  using Counts = bool (*)(const std::string& unit, const std::string& file);
  // The shortest end of the path `file`, in whole components, that no other source file in the table has, as far as
  // `counts` is true of it. The first call reads the names of all sources.
  std::string shortest_end(const std::string& file, Counts counts);

 private:
  std::map<std::string, std::set<std::string>> paths_by_name(Counts counts) const;

  std::optional<std::map<std::string, std::set<std::string>>> paths_;  // of all source files, by their base names
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
};

}  // namespace rehearse::exec
