// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion/completion.h"
#include "cli/job.h"

namespace rehearse::cli {
namespace {

// A user may source the script, which then registers the function. Or zsh finds the script in $fpath, as a file with
// the function's name, and runs it as the function.
constexpr auto kZshScript = R"(#compdef {word}
# zsh completion of {name}; made by `{name} completion zsh`
{function}() {{
  local -a commands=(
{commands}  )
  if ((CURRENT == 2)); then _describe command commands; return; fi
  local command=${{words[2]}}
  shift words
  ((CURRENT--))
  case $command in
{cases}    help) _describe command commands ;;
  esac
}}
if [[ ${{funcstack[1]-}} == {function} ]]; then {function} "$@"; else compdef {function} {word}; fi
)";

std::string zsh_taking(Takes takes, const Completed& completed) {
  const auto words = words_for(takes, completed);
  if (!words.empty()) return fmt::format("({})", fmt::join(words, " "));
  if (takes == Takes::folder) return "_files -/";
  if (takes == Takes::file) return "_files";
  const auto ends = suffixes_for(takes);
  return ends.empty() ? " " : fmt::format("_files -g \"*.({})\"", fmt::join(ends, "|"));
}

// Escapes a description: _arguments puts descriptions in brackets and separates parts with colons.
std::string description(std::string_view text) {
  std::string result;
  for (const char c : inside_quotes(text)) {
    if (c == '[' || c == ']' || c == ':') result += '\\';
    result += c;
  }
  return result;
}

std::string arguments_of(const CommandSpec& command, const Completed& completed) {
  std::string text = "_arguments '--help[print the options]'";
  for (const auto& option : command.options) {
    const auto value =
        option.value.empty() ? "" : fmt::format(":{}:{}", option.value, zsh_taking(option.takes, completed));
    text += fmt::format(" \\\n        '{}{}[{}]{}'", option.name, option.value.empty() ? "" : "=",
                        description(option.summary), value);
  }
  return text + fmt::format(" \\\n        '{}:{}:{}'", command.operand.repeats ? "*" : "1", command.operand.name,
                            zsh_taking(command.operand.takes, completed));
}

}  // namespace

std::string zsh_completion(const Completed& completed) {
  std::string commands, cases;
  for (const auto& command : grammar()) {
    commands += fmt::format("    '{}:{}'\n", command.name, description(headline(command)));
    cases += fmt::format("    {}) {} ;;\n", command.name, arguments_of(command, completed));
  }
  return fmt::format(kZshScript, fmt::arg("name", completed.name), fmt::arg("word", shell_word(completed.name)),
                     fmt::arg("function", function_name(completed.name)), fmt::arg("commands", commands),
                     fmt::arg("cases", cases));
}

}  // namespace rehearse::cli
