// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/arguments.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/job/spelling.h>

#include "cli/grammar/help.h"
#include "cli/grammar/usage_error.h"

namespace rehearse::cli {
namespace {

// Splits the words of one command into options with values, and operands.
class Parser {
 public:
  Parser(const std::string& name, const CommandSpec& command) : name_(name), command_(command) {}

  void parse(const std::vector<std::string>& words, Arguments& arguments) {
    const auto own = std::find(words.begin(), words.end(), "--");
    for (auto word = words.begin(); word != own; ++word) split(word, own);
    if (own != words.end()) take_programs_own({std::next(own), words.end()});
    if (help_) throw HelpAsked{help(name_, &command_)};
    for (const auto& extra : extras_) take_operand(extra, arguments);
    if (arguments.operand.empty() && !command_.operand.question.empty())
      refuse(name_, &command_, command_.operand.question);
    for (const auto& option : command_.options) {
      for (const auto& text : values_[option.flag.name]) {
        const auto wrong = option.value.set(arguments, text, sim::Spelling::typed);
        if (!wrong.empty())
          refuse(name_, &command_, fmt::format("{} is {}{}", option.flag.name, in_quotes(text), wrong));
      }
    }
    require_fit(arguments);
  }

 private:
  using Word = std::vector<std::string>::const_iterator;

  void take_programs_own(const std::vector<std::string>& words) {
    const auto* const option = find_option(command_, "--argument");
    if (option == nullptr) refuse(name_, &command_, "-- separates the arguments of a script, and no script runs here");
    for (const auto& word : words) values_[option->flag.name].push_back(word);
  }

  // Leaves `word` at the last word of the option.
  void split(Word& word, Word end) {
    const auto equals = word->find('=');
    const auto name = word->substr(0, equals);
    const bool has_value = equals != std::string::npos;
    const bool asks_help = name == "--help" || name == "-h";
    if (asks_help && has_value) refuse(name_, &command_, "--help takes no value");
    help_ |= asks_help;
    const auto* const option = find_option(command_, name);
    if (option == nullptr) {
      if (!asks_help) extras_.push_back(*word);
      return;
    }
    const auto& flag = option->flag;
    if (has_value && flag.value.empty()) refuse(name_, &command_, fmt::format("{} takes no value", name));
    std::string value(flag.bare);
    if (has_value) {
      value = word->substr(equals + 1);
    } else if (value.empty() && std::next(word) != end) {
      value = *++word;
    }
    if (value.empty()) refuse(name_, &command_, fmt::format("{0} needs a value, as in {0}={1}", name, flag.example));
    auto& values = values_[flag.name];
    if (!values.empty() && option->value.form != sim::Form::texts && !flag.value.empty())
      refuse(name_, &command_, fmt::format("{} is given twice", name));
    values.push_back(std::move(value));
  }

  void take_operand(const std::string& extra, Arguments& arguments) const {
    if (extra.size() > 1 && extra.starts_with('-')) {
      const auto option = extra.substr(0, extra.find('='));
      const auto unlinked = unlinked_option(&command_, option);
      if (!unlinked.empty()) refuse(name_, &command_, unlinked);
      std::vector<std::string> names = {"--help"};
      for (const auto& each : command_.options) names.emplace_back(each.flag.name);
      refuse(name_, &command_, fmt::format("there is no option \"{}\"{}", option, did_you_mean(option, names)));
    }
    if (command_.operand.name.empty() || (!arguments.operand.empty() && !command_.operand.repeats)) {
      refuse(name_, &command_, fmt::format("\"{}\" is one word too many", extra));
    }
    if (arguments.operand.empty()) arguments.operand = extra;
    arguments.operands.push_back(extra);
  }

  // Refuses options that do not go together.
  void require_fit(Arguments& arguments) {
    const auto& seeds = arguments.seeds;
    if (find_option(command_, "--seeds") != nullptr && !seeds)
      refuse(name_, &command_, fmt::format("which seeds? --seeds takes {}", kSeedRangeTakes));
    if (seeds && arguments.shard && seeds->count() < static_cast<std::uint64_t>(arguments.shard->count)) {
      refuse(name_, &command_,
             fmt::format("--shard is {}; it takes no more parts than there are seeds, {}",
                         in_quotes(values_["--shard"].front()), seeds->count()));
    }
    if (arguments.keep_going && arguments.max_failures)
      refuse(name_, &command_, "--keep-going runs all seeds, --max-failures stops before: give one of them");
    if (seeds && !arguments.time_limit) arguments.time_limit = kSeedTimeLimit;
    const int forms = static_cast<int>(!arguments.text_of.empty()) + static_cast<int>(!arguments.dot_of.empty()) +
                      static_cast<int>(arguments.json);
    if (forms > 1) refuse(name_, &command_, "--text, --dot and --json each print something else: give one of them");
  }

  const std::string& name_;
  const CommandSpec& command_;
  std::map<std::string_view, std::vector<std::string>> values_;
  std::vector<std::string> extras_;  // operands, and words that look like options
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

bool Arguments::gives(std::string_view flag) const {
  return std::any_of(given.begin(), given.end(), [&](const auto& each) { return each.option->flag.name == flag; });
}

std::string Arguments::give(const sim::ScenarioOption& option, std::string_view text) {
  sim::Scenario alone;
  auto wrong = option.value.set(alone, text, sim::Spelling::typed);
  if (!wrong.empty()) return wrong;
  if (option.value.form != sim::Form::texts) take_back(option.flag.name);
  const auto after =
      std::upper_bound(given.begin(), given.end(), option.flag.place,
                       [](int place, const GivenOption& each) { return place < each.option->flag.place; });
  given.insert(after, {&option, option.value.print(alone, sim::Spelling::typed).front()});
  return "";
}

void Arguments::take_back(std::string_view flag) {
  std::erase_if(given, [&](const auto& each) { return each.option->flag.name == flag; });
}

std::string name_of(const std::string& self) { return self.substr(self.rfind('/') + 1); }

Arguments parse_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  arguments.self = argc > 0 ? argv[0] : "rehearse";
  arguments.words.assign(argv, argv + std::max(argc, 0));
  const auto name = name_of(arguments.self);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const CommandSpec& command = chosen(name, words);
  arguments.command = &command;
  Parser(name, command).parse(words, arguments);
  return arguments;
}

}  // namespace rehearse::cli
