// SPDX-License-Identifier: BSD-3-Clause
#include "exec/call_site/line_table.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace rehearse::exec {
namespace {

// Uses only debug information in the file itself; otherwise elfutils would ask debuginfod servers on the network.
int no_separate_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

struct FreeScopes {
  void operator()(Dwarf_Die* scopes) const { std::free(scopes); }
};

// The DIEs that enclose an address or another DIE, innermost first; the last one is the compilation unit.
class Scopes {
 public:
  static Scopes around_address(Dwarf_Die* unit, Dwarf_Addr address) {
    Dwarf_Die* scopes = nullptr;
    const int count = dwarf_getscopes(unit, address, &scopes);
    return {scopes, count};
  }
  static Scopes around(Dwarf_Die* die) {
    Dwarf_Die* scopes = nullptr;
    const int count = dwarf_getscopes_die(die, &scopes);
    return {scopes, count};
  }

  std::span<Dwarf_Die> get() const { return {scopes_.get(), count_}; }

 private:
  // If there are no scopes, libdw returns -1 or 0 and does not set the pointer.
  Scopes(Dwarf_Die* scopes, int count) : scopes_(scopes), count_(count > 0 ? static_cast<std::size_t>(count) : 0) {}

  std::unique_ptr<Dwarf_Die, FreeScopes> scopes_;
  std::size_t count_;
};

// An inlined or out-of-line function refers to the declaration, which has the name and is in the right namespace.
Dwarf_Die declaration_of(Dwarf_Die die) {
  for (const unsigned attribute : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Attribute reference;
    Dwarf_Die target;
    if (dwarf_attr(&die, attribute, &reference) != nullptr && dwarf_formref_die(&reference, &target) != nullptr)
      die = target;
  }
  return die;
}

const char* name_of_scope(Dwarf_Die& scope) {
  if (const char* name = dwarf_diename(&scope)) return name;
  switch (dwarf_tag(&scope)) {
    case DW_TAG_namespace:
      return "(anonymous namespace)";
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
      return "lambda";
    default:
      return nullptr;
  }
}

std::string qualified_name(const Dwarf_Die& function) {
  Dwarf_Die declaration = declaration_of(function);
  const Scopes scopes = Scopes::around(&declaration);
  std::string name;
  for (Dwarf_Die& scope : scopes.get()) {
    const int tag = dwarf_tag(&scope);
    // The scope of a local function is the enclosing function. The function's DIE may be an out-of-line definition
    // outside of the class or namespace, so start again from the declaration.
    if (tag == DW_TAG_subprogram && !name.empty()) return qualified_name(scope) + "::" + name;
    if (tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit) break;
    if (const char* text = name_of_scope(scope)) name = name.empty() ? text : std::string(text) + "::" + name;
  }
  return name;
}

void set_name(SourceFrame& frame, Dwarf_Die& function) {
  Dwarf_Attribute attribute;
  const char* linkage = nullptr;
  if (dwarf_attr_integrate(&function, DW_AT_linkage_name, &attribute) != nullptr)
    linkage = dwarf_formstring(&attribute);
  if (linkage != nullptr)
    frame.mangled = linkage;
  else
    frame.qualified = qualified_name(function);
}

void set_call_place(SourceFrame& caller, Dwarf_Die& inlined, Dwarf_Die* unit) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  Dwarf_Files* files = nullptr;
  dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_file, &attribute), &file);
  dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &line);
  if (dwarf_getsrcfiles(unit, &files, nullptr) != 0) return;
  const char* path = dwarf_filesrc(files, file, nullptr, nullptr);
  if (path == nullptr) return;
  caller.file = path;
  caller.line = static_cast<int>(line);
}

// The unit that contains the address; null if there is none. Uses the index of addresses if the compiler wrote one
// (clang does not). If the index lacks the address, libdw returns a neighbouring unit, so check.
Dwarf_Die* unit_at(Dwfl_Module* module, std::uintptr_t address, Dwarf_Addr& bias) {
  const auto holds = [&](Dwarf_Die* unit) { return dwarf_haspc(unit, address - bias) == 1; };
  if (Dwarf_Die* const indexed = dwfl_module_addrdie(module, address, &bias); indexed != nullptr && holds(indexed))
    return indexed;
  Dwarf_Die* unit = nullptr;
  while ((unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr) {
    if (holds(unit)) return unit;
  }
  return nullptr;
}

void set_place(SourceFrame& frame, Dwarf_Die* unit, Dwarf_Addr address) {
  Dwarf_Line* const line = dwarf_getsrc_die(unit, address);
  if (line == nullptr) return;
  if (const char* const file = dwarf_linesrc(line, nullptr, nullptr)) frame.file = file;
  dwarf_lineno(line, &frame.line);
}

std::string normal(const std::string& path) { return std::filesystem::path(path).lexically_normal().string(); }

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

LineTable::LineTable(const std::string& path, std::uintptr_t bias) {
  static const Dwfl_Callbacks callbacks = {
      .find_elf = nullptr,
      .find_debuginfo = no_separate_debug_file,
      .section_address = nullptr,
      .debuginfo_path = nullptr,
  };
  dwfl_ = dwfl_begin(&callbacks);
  if (dwfl_ == nullptr) return;
  dwfl_report_begin(dwfl_);
  module_ = dwfl_report_elf(dwfl_, path.c_str(), path.c_str(), -1, bias, true);
  dwfl_report_end(dwfl_, nullptr, nullptr);
}

LineTable::~LineTable() { dwfl_end(dwfl_); }

std::vector<SourceFrame> LineTable::lookup(std::uintptr_t address) const {
  if (module_ == nullptr) return {};
  SourceFrame current;
  std::vector<SourceFrame> frames;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = unit_at(module_, address, bias);
  if (unit != nullptr) {
    set_place(current, unit, address - bias);
    // The call stack consists of an inlined function and the functions into which it was inlined, as listed by
    // dwarf_getscopes_die(). dwarf_getscopes() would list other scopes after the inlined function: those around the
    // function's own source code.
    const Scopes at_address = Scopes::around_address(unit, address - bias);
    if (!at_address.get().empty()) {
      const Scopes nested = Scopes::around(&at_address.get().front());
      for (Dwarf_Die& scope : nested.get()) {
        if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine) continue;
        set_name(current, scope);
        frames.push_back(current);
        current = {};
        set_call_place(current, scope, unit);
      }
      for (Dwarf_Die& scope : nested.get()) {
        if (dwarf_tag(&scope) == DW_TAG_subprogram) set_name(current, scope);
      }
    }
  }
  if (current.mangled.empty()) {
    const char* symbol = dwfl_module_addrname(module_, address);
    if (symbol != nullptr) current.mangled = symbol;
  }
  if (!current.mangled.empty() || !current.qualified.empty()) frames.push_back(current);
  if (const char* name = unit != nullptr ? dwarf_diename(unit) : nullptr) {
    for (SourceFrame& frame : frames) frame.unit = name;
  }
  return frames;
}

std::string LineTable::shortest_end(const std::string& file, Counts counts) {
  if (!paths_) paths_ = paths_by_name(counts);
  const std::string path = normal(file);
  const auto others = paths_->find(name_in(path));
  std::size_t begin = path.rfind('/') + 1;
  const auto ends_as_file = [&](const std::string& other) {
    return other != path && other.ends_with(std::string_view(path).substr(begin));
  };
  while (begin > 0 && others != paths_->end() && std::ranges::any_of(others->second, ends_as_file))
    begin = begin > 1 ? path.rfind('/', begin - 2) + 1 : 0;
  return path.substr(begin);
}

std::map<std::string, std::set<std::string>> LineTable::paths_by_name(Counts counts) const {
  std::map<std::string, std::set<std::string>> paths;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; module_ != nullptr && (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr;) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    const char* const unit_name = dwarf_diename(unit);
    const std::string named = unit_name != nullptr ? unit_name : "";
    if (!counts(named, "") || dwarf_getsrcfiles(unit, &files, &count) != 0) continue;
    for (std::size_t i = 1; i < count; ++i) {
      const char* const file = dwarf_filesrc(files, i, nullptr, nullptr);
      if (file != nullptr && counts(named, file)) paths[name_in(file)].insert(normal(file));
    }
  }
  return paths;
}

}  // namespace rehearse::exec
