// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/program.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include <fmt/format.h>

#include "job/module_image.h"
#include "job/registry.h"

namespace rehearse {

// Made on first use, because programs register from static initialisers of other files, in an unknown order. A deque,
// so that pointers to programs stay valid.
std::deque<Program>& registered_programs() {
  static std::deque<Program> programs;
  return programs;
}

namespace {

std::vector<ProgramKind*>& program_kinds() {
  static std::vector<ProgramKind*> kinds;
  return kinds;
}

}  // namespace

void add_program_kind(ProgramKind& kind) { program_kinds().push_back(&kind); }

// Does not check for clashes of names: an exception in a static initialiser would end the process before anything could
// print it. programs() reports them. The return address shows which image contains the program.
RegisteredProgram::RegisteredProgram(Program program) {
  if (auto* const image = ModuleImage::with(__builtin_return_address(0))) {
    image->programs.push_back(std::move(program));
  } else {
    registered_programs().push_back(std::move(program));
  }
}

std::vector<const Program*> programs() {
  load_registered_modules();
  std::vector<const Program*> sorted;
  for (const Program& program : registered_programs()) sorted.push_back(&program);
  std::sort(sorted.begin(), sorted.end(), [](const Program* a, const Program* b) { return a->name < b->name; });
  const auto clash = std::adjacent_find(sorted.begin(), sorted.end(),
                                        [](const Program* a, const Program* b) { return a->name == b->name; });
  if (clash != sorted.end()) {
    throw std::logic_error(fmt::format("two programs of this executable are named \"{}\"", (*clash)->name));
  }
  return sorted;
}

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const auto* program : programs()) names.push_back(program->name);
  return names;
}

const Program* find_program(std::string_view name) {
  const auto all = programs();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Program* program) { return program->name == name; });
  if (found != all.end()) return *found;
  for (auto* const kind : program_kinds()) {
    if (const auto* const program = kind->find(name)) return program;
  }
  return nullptr;
}

}  // namespace rehearse
