// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/arguments.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/job/spelling.h>
#include <CLI/CLI.hpp>

#include "cli/grammar/help.h"
#include "cli/grammar/option_values.h"
#include "cli/grammar/usage_error.h"

namespace rehearse::cli {
namespace {

// A command of the grammar in CLI11's terms. It keeps values as typed, because errors about values use our own words.
class Parser {
 public:
  Parser(std::string name, const CommandSpec& command)
      : name_(std::move(name)), command_(command), app_(std::string(command.name)) {
    app_.set_help_flag();
    app_.allow_extras();
    app_.add_flag("-h,--help", help_)->disable_flag_override();
    for (const auto& option : command.options) add(option);
  }

  Typed parse(std::vector<std::string> words) {
    for (auto& word : words) {
      require_value(word);
      const auto* const option = find_option(command_, word);
      if (option != nullptr && !option->alone.empty()) word += fmt::format("={}", option->alone);
    }
    std::reverse(words.begin(), words.end());  // CLI11 expects this order
    try {
      app_.parse(words);
    } catch (const CLI::ParseError& error) {
      refuse_value(error.what());
    }
    if (help_) throw HelpAsked{help(name_, &command_)};
    for (const auto& option : command_.options) {
      const bool given = app_.get_option(std::string(option.name))->count() > 0;
      if (option.repeats) continue;
      if (given && !option.value.empty() && typed_.values[std::string(option.name)].empty()) refuse_missing(option);
    }
    for (const auto& extra : app_.remaining()) take(extra);
    if (typed_.operand.empty() && !command_.operand.question.empty())
      refuse(name_, &command_, command_.operand.question);
    return std::move(typed_);
  }

 private:
  void add(const OptionSpec& option) {
    const std::string key(option.name);
    if (option.value.empty()) {
      app_.add_flag(key, typed_.flags[key])->disable_flag_override();
    } else if (option.repeats) {
      app_.add_option(key, typed_.lists[key])->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      app_.add_option(key, typed_.values[key]);
    }
  }

  // For "--seed=", CLI11 would take the next word as the value.
  void require_value(const std::string& word) const {
    if (!word.ends_with('=')) return;
    const auto* const option = find_option(command_, std::string_view(word).substr(0, word.size() - 1));
    if (option != nullptr && !option->value.empty()) refuse_missing(*option);
  }

  [[noreturn]] void refuse_missing(const OptionSpec& option) const {
    refuse(name_, &command_, fmt::format("{} needs a value, as in {}={}", option.name, option.name, option.example));
  }

  // CLI11's text begins with the option's name; for a flag, without the dashes.
  [[noreturn]] void refuse_value(const std::string& text) const {
    const auto said = text.substr(0, text.find_first_of(": "));
    if (said == "help") refuse(name_, &command_, "--help takes no value");
    for (const auto& option : command_.options) {
      if (option.name != said && option.name != "--" + said) continue;
      if (option.value.empty()) refuse(name_, &command_, fmt::format("{} takes no value", option.name));
      if (app_.get_option(std::string(option.name))->results().size() > 1) {
        refuse(name_, &command_, fmt::format("{} is given twice", option.name));
      }
      refuse_missing(option);
    }
    refuse(name_, &command_, text);
  }

  void take(const std::string& extra) {
    if (extra.size() > 1 && extra.starts_with('-')) {
      const auto option = extra.substr(0, extra.find('='));
      const auto unlinked = unlinked_option(&command_, option);
      if (!unlinked.empty()) refuse(name_, &command_, unlinked);
      std::vector<std::string> names = {"--help"};
      for (const auto& each : command_.options) names.emplace_back(each.name);
      refuse(name_, &command_, fmt::format("there is no option \"{}\"{}", option, did_you_mean(option, names)));
    }
    if (command_.operand.name.empty() || (!typed_.operand.empty() && !command_.operand.repeats)) {
      refuse(name_, &command_, fmt::format("\"{}\" is one word too many", extra));
    }
    if (typed_.operand.empty()) typed_.operand = extra;
    typed_.operands.push_back(extra);
  }

  const std::string name_;
  const CommandSpec& command_;
  CLI::App app_;
  Typed typed_;
  bool help_ = false;
};

const CommandSpec& command_called(const std::string& name, const std::string& word) {
  if (const auto* const command = find_command(word)) return *command;
  const auto unlinked = unlinked_command(word);
  if (!unlinked.empty()) refuse(name, nullptr, unlinked);
  refuse(name, nullptr, fmt::format("there is no command \"{}\"{}", word, did_you_mean(word, command_names())));
}

// The first word is a command, or asks for help or version.
const CommandSpec& chosen(const std::string& name, std::vector<std::string>& words) {
  if (words.empty()) refuse(name, nullptr, "which command?");
  const std::string word = words.front();
  words.erase(words.begin());
  if (word == "--version") throw HelpAsked{"rehearse " REHEARSE_VERSION "\n"};
  if (word == "--help" || word == "-h" || word == "help") {
    if (words.size() > 1) refuse(name, nullptr, fmt::format("\"{}\" is one word too many", words[1]));
    const bool of_all = words.empty() || words.front() == "help";
    throw HelpAsked{help(name, of_all ? nullptr : &command_called(name, words.front()))};
  }
  if (!word.starts_with('-')) return command_called(name, word);
  const auto option = word.substr(0, word.find('='));
  for (const auto& command : grammar()) {
    if (find_option(command, option) == nullptr) continue;
    refuse(name, nullptr, fmt::format("{} goes after the command, as in {} {} {}", word, name, command.name, word));
  }
  const auto unlinked = unlinked_option(nullptr, option);
  if (!unlinked.empty()) refuse(name, nullptr, unlinked);
  refuse(name, nullptr, fmt::format("there is no option \"{}\"{}", word, did_you_mean(word, {"--help", "--version"})));
}

}  // namespace

std::string name_of(const std::string& self) { return self.substr(self.rfind('/') + 1); }

Arguments parse_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  arguments.self = argc > 0 ? argv[0] : "rehearse";
  arguments.words.assign(argv, argv + std::max(argc, 0));
  const auto name = name_of(arguments.self);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const CommandSpec& command = chosen(name, words);
  arguments.command = &command;
  take_values(name, command, Parser(name, command).parse(std::move(words)), arguments);
  return arguments;
}

}  // namespace rehearse::cli
