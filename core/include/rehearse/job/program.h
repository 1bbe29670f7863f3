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
  bool takes_arguments = false;  // words of a command line of its own, besides parameters: Parameters::arguments()
};

struct Program {
  std::string name;
  ProgramSpec spec;
};

// A kind of program that is not linked into this executable, such as the scripts of a language.
class ProgramKind {
 public:
  virtual ~ProgramKind() = default;

  // Null: no program of this kind has that name. The program stays valid.
  virtual const Program* find(std::string_view name) = 0;
};

// From now on, find_program() also finds programs of this kind. `kind` must live as long as the process.
void add_program_kind(ProgramKind& kind);

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
