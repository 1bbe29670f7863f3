// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse/job/parameters.h>

namespace rehearse {

class RankContext;

// A job that the command can run by name: its body runs on every rank.
struct ProgramSpec {
  std::string summary;
  std::vector<ParameterSpec> parameters = {};
  std::function<void(RankContext&, const Parameters&)> body;
};

struct Program {
  std::string name;
  ProgramSpec spec;
};

// All programs linked into this executable, ordered by name. Throws std::logic_error if two have the same name, and
// ModuleError if a RegisteredModule cannot be loaded.
std::vector<const Program*> programs();

// Their names, in the same order.
std::vector<std::string> program_names();

// Null if no program has that name. Throws as programs() does.
const Program* find_program(std::string_view name);

// Implementation of REHEARSE_PROGRAM; programs use the macro.
class ProgramName {
 public:
  explicit ProgramName(std::string name) : name_(std::move(name)) {}
  std::string take() { return std::move(name_); }

 private:
  std::string name_;
};
class RegisteredProgram {
 public:
  RegisteredProgram(Program program);  // NOLINT: implicit, so that the macro reads as an initialiser
};
inline Program operator<<(ProgramName name, ProgramSpec spec) { return {name.take(), std::move(spec)}; }

}  // namespace rehearse

// Registers a program. Use it in a source file at namespace scope:
//
//   REHEARSE_PROGRAM(lm_ddp){.summary = "...", .parameters = {{"steps", std::int64_t{20}, "training steps"}},
//                            .body = train};
#define REHEARSE_PROGRAM(name)                                                                        \
  static const ::rehearse::RegisteredProgram rehearse_program_##name = ::rehearse::ProgramName(#name) \
                                                                       << ::rehearse::ProgramSpec
