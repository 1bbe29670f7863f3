// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion/completion.h"
#include "cli/job.h"

namespace rehearse::cli {
namespace {

// Bash splits --name=value into three words.
constexpr auto kBashScript = R"(# bash completion of {name}; made by `{name} completion bash`
{function}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then {first}; return; fi
  if [[ $cur == '=' ]]; then cur=
  elif [[ $before == '=' ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  case $command:$before in
{values}  esac
  if [[ $cur == -* ]]; then
    case $command in
{options}    esac
    [[ ${{COMPREPLY[0]-}} == *= ]] && compopt -o nospace
    return
  fi
  case $command in
{operands}    help) {commands} ;;
  esac
}}
complete -F {function} {word}
)";

std::string words(const std::vector<std::string>& words) {
  return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")", fmt::join(words, " "));
}

std::string files(const std::string& generate) {
  return fmt::format("compopt -o filenames; mapfile -t COMPREPLY < <({})", generate);
}

std::string bash_taking(Takes takes, const Completed& completed) {
  const auto known = words_for(takes, completed);
  if (!known.empty()) return words(known);
  if (takes == Takes::folder) return files("compgen -d -- \"$cur\"");
  if (takes == Takes::file) return files("compgen -f -- \"$cur\"");
  const auto ends = suffixes_for(takes);
  if (ends.empty()) return "return";
  return files(fmt::format("compgen -d -- \"$cur\"; shopt -s extglob; compgen -f -X '!*.@({})' -- \"$cur\"",
                           fmt::join(ends, "|")));
}

}  // namespace

std::string bash_completion(const Completed& completed) {
  std::string values, options, operands;
  for (const auto& command : grammar()) {
    std::vector<std::string> names = {"--help"};
    for (const auto& option : command.options) {
      names.push_back(fmt::format("{}{}", option.name, option.value.empty() ? "" : "="));
      if (option.value.empty()) continue;
      values +=
          fmt::format("    {}:{}) {}; return ;;\n", command.name, option.name, bash_taking(option.takes, completed));
    }
    options += fmt::format("      {}) {} ;;\n", command.name, words(names));
    operands += fmt::format("    {}) {} ;;\n", command.name, bash_taking(command.operand.takes, completed));
  }
  auto first = command_names();
  first.insert(first.end(), {"help", "--help", "--version"});
  return fmt::format(kBashScript, fmt::arg("name", completed.name), fmt::arg("word", shell_word(completed.name)),
                     fmt::arg("function", function_name(completed.name)), fmt::arg("first", words(first)),
                     fmt::arg("values", values), fmt::arg("options", options), fmt::arg("operands", operands),
                     fmt::arg("commands", words(command_names())));
}

}  // namespace rehearse::cli
