// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion/completion.h"
#include "cli/job.h"

namespace rehearse::cli {
namespace {

std::string fish_taking(Takes takes, const Completed& completed) {
  const auto words = words_for(takes, completed);
  if (!words.empty()) return fmt::format("-x -a '{}'", fmt::join(words, " "));
  if (takes == Takes::folder) return "-x -a '(__fish_complete_directories)'";
  if (takes == Takes::file) return "-r -F";
  std::string calls;
  for (const auto& end : suffixes_for(takes)) calls += fmt::format("__fish_complete_suffix .{}; ", end);
  return calls.empty() ? "-x" : fmt::format("-x -k -a '({})'", calls);
}

}  // namespace

std::string fish_completion(const Completed& completed) {
  const auto complete = fmt::format("complete -c {} ", shell_word(completed.name));
  const auto first = complete + "-n __fish_use_subcommand ";
  auto text = fmt::format("# fish completion of {0}; made by `{0} completion fish`\n{1}-f\n", completed.name, complete);
  text += first + "-a help -d 'Prints all options of a command'\n";
  text += first + "-l help -d 'print the commands'\n";
  text += first + "-l version -d 'print the version'\n";
  text +=
      fmt::format("{}-n '__fish_seen_subcommand_from help' -x -a '{}'\n", complete, fmt::join(command_names(), " "));
  for (const auto& command : grammar()) {
    text += fmt::format("{}-a {} -d '{}'\n", first, command.name, inside_quotes(headline(command)));
    const auto here = fmt::format("{}-n '__fish_seen_subcommand_from {}' ", complete, command.name);
    for (const auto& option : command.options) {
      const auto value = option.value.empty() ? "" : " " + fish_taking(option.takes, completed);
      text += fmt::format("{}-l {}{} -d '{}'\n", here, option.name.substr(2), value, inside_quotes(option.summary));
    }
    text += fmt::format("{}-l help -d 'print the options'\n{}{}\n", here, here,
                        fish_taking(command.operand.takes, completed));
  }
  return text;
}

}  // namespace rehearse::cli
