// SPDX-License-Identifier: BSD-3-Clause
#include "cli/completion/completion.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/job/program.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/job/spelling.h>

#include "cli/commands.h"
#include "cli/grammar/split_rules.h"
#include "cli/grammar/usage_error.h"

namespace rehearse::cli {

const std::vector<std::string>& shells() {
  static const std::vector<std::string> names = {"bash", "fish", "zsh"};
  return names;
}

std::vector<std::string> words_for(Takes takes, const Completed& completed) {
  if (takes == Takes::program) return completed.programs;
  if (takes == Takes::shell) return shells();
  if (takes == Takes::rules) return rule_names();
  if (takes == Takes::transport) return transport_names();
  if (takes == Takes::checks) return check_level_names();
  return {};
}

std::vector<std::string> suffixes_for(Takes takes) {
  if (takes == Takes::scenario) return {"toml"};
  if (takes == Takes::log) return {"rlog", "toml"};
  if (takes == Takes::model) return {"pt2", "json"};
  return {};
}

std::string function_name(const std::string& executable) {
  std::string result = "_";
  for (const char c : executable) result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return result;
}

std::string inside_quotes(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result;
}

int completion(const Arguments& arguments, Console& console) {
  const auto name = name_of(arguments.self);
  const auto& shell = arguments.operand;
  if (std::find(shells().begin(), shells().end(), shell) == shells().end()) {
    refuse(name, find_command("completion"),
           fmt::format("there is no script for the shell \"{}\"{}; there is one for {}", shell,
                       did_you_mean(shell, shells()), fmt::join(shells(), ", ")));
  }
  Completed completed{name, {}};
  for (const auto* program : programs()) completed.programs.push_back(program->name);
  if (shell == "bash") console.result(bash_completion(completed));
  if (shell == "fish") console.result(fish_completion(completed));
  if (shell == "zsh") console.result(zsh_completion(completed));
  return 0;
}

}  // namespace rehearse::cli
