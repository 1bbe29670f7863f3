// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/option.h"

// Describes, as data, everything that a user may type after the command's name. The parser, its errors and --help all
// read this data, so they cannot disagree.
namespace rehearse::cli {

struct Arguments;
class Console;

// Runs a command. Returns the process's exit code. Throws UsageError, ScenarioError and the other errors for which
// exit_code_of_exception() has a code, for problems that the user must fix.
using CommandFunction = int (*)(const Arguments& arguments, Console& console);

// The CMake component that registers the runner of real runs.
inline constexpr std::string_view kRealComponent = "real";

// An option of the command line: one of the scenario, or one of the command itself. Its section is the only command
// that has it; empty: any.
using OptionSpec = sim::Option<Arguments>;

// All options; if several have the same name, the last one is that of the other commands.
const sim::Options<Arguments>& all_options();

// The word that follows a command and is not an option.
struct OperandSpec {
  std::string_view name;      // "SCENARIO"; shell completion offers words that fit this name
  std::string_view question;  // "which scenario?", asked if it is missing; empty: it is optional
  std::string_view summary;
  bool repeats = false;  // may be several words
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;
  OperandSpec operand;
  std::vector<std::string_view> flags;     // the names of its options
  std::vector<std::string_view> examples;  // each without the executable's name
  CommandFunction function = nullptr;      // null: a RegisteredCommand provides it
  std::string_view component = {};         // the CMake component that it needs; empty: works in every program
  sim::Options<Arguments> options = {};    // made from `flags`
};

// The first sentence of a command's summary, without the full stop.
std::string_view headline(const CommandSpec& command);

// All commands, including those that this program does not link, in the order of --help. Without their options.
std::vector<CommandSpec> command_table();

// The same with their options.
const std::vector<CommandSpec>& known_commands();

// The commands and options of this program: those whose components it links. Every `function` is set.
const std::vector<CommandSpec>& grammar();

std::vector<std::string> command_names();

// Null if the program offers no such command or option.
const CommandSpec* find_command(std::string_view name);
const OptionSpec* find_option(const CommandSpec& command, std::string_view name);

// Says which component to link for a command or an option that this program does not offer. Empty if no component
// provides it. `command`: the command before the option; null: the option stands before the command.
std::string unlinked_command(std::string_view name);
std::string unlinked_option(const CommandSpec* command, std::string_view name);

// A static object of this type in a library provides the function of a known command to all programs that link the
// library.
class RegisteredCommand {
 public:
  RegisteredCommand(std::string_view name, CommandFunction function) noexcept;

  // Null if no linked library has registered the command.
  static CommandFunction find(std::string_view name) noexcept;

 private:
  const std::string_view name_;
  const CommandFunction function_;
  const RegisteredCommand* const next_;
};

}  // namespace rehearse::cli
