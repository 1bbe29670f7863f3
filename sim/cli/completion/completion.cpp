// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/job/program.h>
#include <rehearse_internal/job/spelling.h>

#include "cli/commands.h"
#include "cli/grammar/usage_error.h"
#include "cli/job.h"

namespace rehearse::cli {
namespace {

constexpr auto kBashScript = R"sh(# bash completion of {name}; made by `{name} completion bash`
{function}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} offer
  [[ $cur == '=' ]] && cur=
  COMPREPLY=()
  while IFS= read -r offer; do
    case $offer in
      @folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
      @files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
      @files*) compopt -o filenames; shopt -s extglob
        mapfile -t COMPREPLY < <(compgen -d -- "$cur"; compgen -f -X "!*.@(${{offer#* }})" -- "$cur") ;;
      *) COMPREPLY+=("${{offer%%$'\t'*}}") ;;
    esac
  done < <("${{COMP_WORDS[0]/#\~/$HOME}}" __complete "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2> /dev/null)
  [[ ${{COMPREPLY[0]-}} == *= ]] && compopt -o nospace
}}
complete -F {function} {word}
)sh";

constexpr auto kFishScript = R"sh(# fish completion of {name}; made by `{name} completion fish`
function {function}
  set -l words (commandline -opc) (commandline -ct)
  set -l before (string match -r -- '^--[^=]*=' $words[-1])
  set -l self (string replace -r -- '^~' $HOME $words[1])
  for offer in ($self __complete $words[2..-1] 2> /dev/null)
    switch $offer
      case @folders; __fish_complete_directories (commandline -ct)
      case @files; __fish_complete_path (commandline -ct)
      case '@files *'
        for end in (string split '|' -- (string replace '@files ' '' -- $offer)); __fish_complete_suffix .$end; end
      case '*'; echo "$before$offer"
    end
  end
end
complete -c {word} -f -k -a '({function})'
)sh";

// A user may source the script, which then registers the function. Or zsh finds the script in $fpath, as a file with
// the function's name, and runs it as the function.
constexpr auto kZshScript = R"sh(#compdef {word}
# zsh completion of {name}; made by `{name} completion zsh`
{function}() {{
  local offer
  local -a plain valued
  local -a offers=("${{(@f)$("${{words[1]/#\~/$HOME}}" __complete "${{(@)words[2,CURRENT]}}" 2> /dev/null)}}")
  compset -P '--*='
  for offer in $offers; do
    case $offer in
      @folders) _files -/ ;;
      @files) _files ;;
      @files*) _files -g "*.(${{offer#* }})" ;;
      *=$'\t'*) valued+=("${{${{offer//:/\\:}}/$'\t'/:}}") ;;
      ?*) plain+=("${{${{offer//:/\\:}}/$'\t'/:}}") ;;
    esac
  done
  _describe option valued -S '' -- plain
}}
if [[ ${{funcstack[1]-}} == {function} ]]; then {function} "$@"; else compdef {function} {word}; fi
)sh";

const std::map<std::string, const char*>& scripts() {
  static const std::map<std::string, const char*> all = {
      {"bash", kBashScript}, {"fish", kFishScript}, {"zsh", kZshScript}};
  return all;
}

std::vector<std::string> shells() {
  std::vector<std::string> names;
  for (const auto& [name, script] : scripts()) names.push_back(name);
  return names;
}

// The words or files that `name` stands for, an operand or a value: "SCENARIO".
std::vector<std::string> named(std::string_view name) {
  std::vector<std::string> words;
  if (name == "PROGRAM") words = program_names();
  if (name == "SHELL") words = shells();
  if (name == "FILE") words = {"@files"};
  if (name == "DIR") words = {"@folders"};
  if (name == "SCENARIO") words = {"@files toml"};
  if (name == "LOG") words = {"@files rlog|toml"};
  if (name == "MODEL") words = {"@files pt2|json"};
  return words;
}

std::vector<std::string> described_commands() {
  std::vector<std::string> all;
  for (const auto& command : grammar()) all.push_back(fmt::format("{}\t{}", command.name, headline(command)));
  return all;
}

// What may stand for the last word behind `before`, whatever its letters.
std::vector<std::string> all_offers(const std::vector<std::string>& before, std::string_view word) {
  if (before.empty() || before == std::vector<std::string>{"help"}) {
    auto all = described_commands();
    if (before.empty())
      all.insert(all.end(), {"help\tprint all options of a command", "--help\tprint the commands",
                             "--version\tprint the version"});
    return all;
  }
  const auto* const command = find_command(before.front());
  if (command == nullptr) return {};
  const auto equals = word.find('=');
  const auto* const option =
      find_option(*command, equals == std::string_view::npos ? before.back() : word.substr(0, equals));
  if (option != nullptr && !option->flag.value.empty() &&
      (equals != std::string_view::npos || option->flag.bare.empty()))
    return option->value.words.empty() ? named(option->flag.value) : option->value.words;
  if (!word.starts_with('-')) return named(command->operand.name);
  std::vector<std::string> all = {"--help\tprint the options"};
  for (const auto& option : command->options) {
    const auto& flag = option.flag;
    all.push_back(fmt::format("{}{}\t{}", flag.name, flag.value.empty() ? "" : "=", flag.summary));
  }
  return all;
}

std::string function_name(const std::string& executable) {
  std::string result = "_";
  for (const char c : executable) result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return result;
}

}  // namespace

std::string offers(std::vector<std::string> words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] != "=" || !words[i - 1].starts_with("--")) continue;
    words[i - 1] += i + 1 < words.size() ? "=" + words[i + 1] : "=";
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                words.begin() + static_cast<std::ptrdiff_t>(std::min(i + 2, words.size())));
  }
  if (words.empty()) return "";
  const std::string word = words.back();
  words.pop_back();
  const auto value = word.starts_with("--") ? word.substr(word.find('=') + 1) : word;  // all of it without a "="
  std::string text;
  for (const auto& offer : all_offers(words, word)) {
    if (offer.starts_with('@') || offer.starts_with(value)) text += offer + "\n";
  }
  return text;
}

int completion(const Arguments& arguments, Console& console) {
  const auto name = name_of(arguments.self);
  const auto script = scripts().find(arguments.operand);
  if (script == scripts().end()) {
    refuse(name, find_command("completion"),
           fmt::format("there is no script for the shell \"{}\"{}; there is one for {}", arguments.operand,
                       did_you_mean(arguments.operand, shells()), fmt::join(shells(), ", ")));
  }
  console.result(fmt::format(fmt::runtime(script->second), fmt::arg("name", name), fmt::arg("word", shell_word(name)),
                             fmt::arg("function", function_name(name))));
  return 0;
}

}  // namespace rehearse::cli
