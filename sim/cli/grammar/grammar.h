// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

// Describes, as data, everything that a user may type after the command's name. The parser, its errors and --help all
// read this data, so they cannot disagree.
namespace rehearse::cli {

struct Arguments;
class Console;

// Runs a command. Returns the process's exit code. Throws UsageError, ScenarioError and the other errors for which
// exit_code_of_exception() has a code, for problems that the user must fix.
using CommandFunction = int (*)(const Arguments& arguments, Console& console);

// The kinds of words on the command line. Shell completion offers words of the kind that fits.
enum class Takes { anything, scenario, log, model, rules, transport, checks, program, shell, folder, file };

// The CMake component that registers the runner of real runs.
inline constexpr std::string_view kRealComponent = "real";

struct OptionSpec {
  std::string_view name;     // "--seed"
  std::string_view value;    // "N"; empty: the option is a flag, without a value
  std::string_view example;  // for a value: "7"
  std::string_view summary;
  Takes takes = Takes::anything;
  bool repeats = false;             // may be given more than once
  std::string_view component = {};  // kRealComponent, or empty: works in every program
  std::string_view alone = {};      // the value of the option if it is given without one; empty: it needs one
};

// The word that follows a command and is not an option.
struct OperandSpec {
  std::string_view name;      // "SCENARIO"
  std::string_view question;  // "which scenario?", asked if it is missing; empty: it is optional
  std::string_view summary;
  Takes takes = Takes::anything;
  bool repeats = false;  // may be several words
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;
  OperandSpec operand;
  std::vector<OptionSpec> options;
  std::vector<std::string_view> examples;  // each without the executable's name
  CommandFunction function = nullptr;      // null: a RegisteredCommand provides it
  std::string_view component = {};         // the CMake component that it needs; empty: works in every program
};

// The first sentence of a command's summary, without the full stop.
std::string_view headline(const CommandSpec& command);

// All commands, including those that this program does not link, in the order of --help.
std::vector<CommandSpec> known_commands();

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
