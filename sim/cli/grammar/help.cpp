// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/help.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/job/verdict.h>

#include "cli/terminal/exit_codes.h"
#include "report/writers/text_lines.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kWidth = 100;

struct Row {
  std::string left, right;
};

std::string table(std::string_view title, const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.left.size());
  std::string text = fmt::format("\n{}:\n", title);
  for (const auto& row : rows) {
    text += sim::wrapped(fmt::format("  {:<{}}  ", row.left, width), row.right, kWidth, width + 4) + "\n";
  }
  return text;
}

std::string examples(const std::string& name, const CommandSpec& command) {
  std::string text = "\nexamples:\n";
  for (const auto example : command.examples) text += fmt::format("  {} {}\n", name, example);
  return text;
}

// Verdicts that share a code share a row.
std::string exit_codes() {
  std::map<int, std::string> meanings;
  for (const auto verdict : all_verdicts()) {
    auto& meaning = meanings[exit_code(verdict)];
    meaning += (meaning.empty() ? "" : ", ") + std::string(to_string(verdict));
  }
  meanings[kExitDisagree] = "FAULT NOT FIRED; OK if the scenario expects another verdict; validate: the runs disagree";
  meanings[kExitUsage] = "wrong usage: correct the option, the file or the scenario; nothing ran";
  meanings[kExitOutput] = "the verdict was OK or the expected one, but a file or stdout could not be written";
  meanings[kExitInternal] = "internal error of rehearse";
  meanings[kExitUnavailable] =
      "this machine lacks what the run needs: GPUs, NCCL, other processes, a LibTorch that fits";
  meanings[kExitSystem] = "the system had no more memory, processes or files to give";
  meanings[kExitKilled] = "SIGKILL ended the command itself";
  std::vector<Row> rows;
  for (const auto& [code, meaning] : meanings) rows.push_back({fmt::format("{}", code), meaning});
  return table("exit codes", rows);
}

std::string help_of(const std::string& name, const CommandSpec& command) {
  std::string text = usage(name, &command) + "\n\n" + sim::wrapped("", command.summary, kWidth, 0) + "\n";
  if (!command.operand.name.empty()) {
    text += fmt::format("\n  {}  {}\n", command.operand.name, command.operand.summary);
  }
  std::vector<Row> rows;
  for (const auto& option : command.options) {
    const auto& flag = option.flag;
    const auto value = flag.value.empty()  ? ""
                       : flag.bare.empty() ? fmt::format("={}", flag.value)
                                           : fmt::format("[={}]", flag.value);
    rows.push_back({fmt::format("{}{}", flag.name, value), std::string(flag.summary)});
  }
  rows.push_back({"--help", "print this"});
  return text + table("options", rows) + examples(name, command);
}

}  // namespace

std::string usage(const std::string& name, const CommandSpec* command) {
  if (command == nullptr) {
    return fmt::format("usage: {} {} ...", name, fmt::join(command_names(), "|"));
  }
  std::string operand(command->operand.name);
  if (!operand.empty()) operand = command->operand.question.empty() ? " [" + operand + "]" : " " + operand;
  if (command->operand.repeats) operand += "...";
  return fmt::format("usage: {} {}{} [options]", name, command->name, operand);
}

std::string help(const std::string& name, const CommandSpec* command) {
  if (command != nullptr) return help_of(name, *command);
  std::vector<Row> rows;
  for (const auto& each : grammar()) rows.push_back({std::string(each.name), fmt::format("{}.", headline(each))});
  return usage(name, nullptr) +
         "\n\nRuns distributed LibTorch programs with every rank as a fiber of this process: real values, "
         "virtual "
         "time,\none seed is one run.\n" +
         table("commands", rows) +
         table("options", {{"--help", "print this help; after a command, the help of that command"},
                           {"--version", "print the version"}}) +
         exit_codes();
}

}  // namespace rehearse::cli
