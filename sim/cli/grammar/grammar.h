// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

// What may be typed after the command's name, as data. The parser, its errors and --help all read it, so that
// they cannot disagree.
namespace rehearse::cli {

enum class Command { run, sweep, replay, explain, validate, merge, split, list, completion };

// What a word stands for; shell completion offers such words.
enum class Takes { anything, scenario, log, report, model, rules, carrier, program, shell, folder, file };

struct OptionSpec {
  std::string_view name;     // "--seed"
  std::string_view value;    // "N"; empty: a flag, which takes none
  std::string_view example;  // of a value: "7"
  std::string_view summary;
  Takes takes = Takes::anything;
  bool repeats = false;  // may be given more than once
};

// The word of a command that is no option.
struct OperandSpec {
  std::string_view name;      // "SCENARIO"
  std::string_view question;  // "which scenario?", when it is missing; empty: it may be left out
  std::string_view summary;
  Takes takes = Takes::anything;
};

struct CommandSpec {
  Command command;
  std::string_view name;
  std::string_view summary;
  OperandSpec operand;
  std::vector<OptionSpec> options;
  std::vector<std::string_view> examples;  // without the command's own name
};

// In the order in which --help lists them.
const std::vector<CommandSpec>& grammar();

std::vector<std::string> command_names();

// Null when there is no such command.
const CommandSpec* find_command(std::string_view name);
const OptionSpec* find_option(const CommandSpec& command, std::string_view name);

}  // namespace rehearse::cli
