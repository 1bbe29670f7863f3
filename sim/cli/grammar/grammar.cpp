// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/grammar.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <rehearse/job/runner.h>

namespace rehearse::cli {
namespace {

constinit const RegisteredCommand* g_registered = nullptr;

bool is_linked(const OptionSpec& option) { return option.flag.component != kRealComponent || has_real_runner(); }

bool is_linked(const CommandSpec& command) {
  return command.function != nullptr && (command.component != kRealComponent || has_real_runner());
}

std::vector<CommandSpec> linked_commands() {
  std::vector<CommandSpec> linked;
  for (auto command : known_commands()) {
    if (command.function == nullptr) command.function = RegisteredCommand::find(command.name);
    if (!is_linked(command)) continue;
    std::erase_if(command.options, [](const OptionSpec& option) { return !is_linked(option); });
    linked.push_back(std::move(command));
  }
  return linked;
}

const OptionSpec& option_of(const CommandSpec& command, std::string_view flag) {
  for (const auto& option : all_options()) {
    if (option.flag.name == flag && (option.section.empty() || option.section == command.name)) return option;
  }
  throw std::logic_error(fmt::format("the table of commands names {}, which is no option", flag));
}

const CommandSpec* find_named(const std::vector<CommandSpec>& specs, std::string_view name) {
  const auto found = std::ranges::find_if(specs, [&](const auto& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

std::string unlinked(std::string_view word, std::string_view component) {
  const auto* const is_missing = component == kRealComponent ? "needs the real mode, which is" : "is";
  return fmt::format(
      "{0} {1} not part of this program: link rehearse::{2} (find_package(rehearse COMPONENTS main {2}))", word,
      is_missing, component);
}

}  // namespace

std::string_view headline(const CommandSpec& command) {
  std::string_view sentence = command.summary.substr(0, command.summary.find(". "));
  if (sentence.ends_with('.')) sentence.remove_suffix(1);
  return sentence;
}

const std::vector<CommandSpec>& known_commands() {
  static const std::vector<CommandSpec> commands = [] {
    auto all = command_table();
    for (auto& command : all) {
      for (const auto flag : command.flags) command.options.push_back(option_of(command, flag));
    }
    return all;
  }();
  return commands;
}

const std::vector<CommandSpec>& grammar() {
  static const std::vector<CommandSpec> commands = linked_commands();
  return commands;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& command : grammar()) names.emplace_back(command.name);
  return names;
}

const CommandSpec* find_command(std::string_view name) { return find_named(grammar(), name); }

const OptionSpec* find_option(const CommandSpec& command, std::string_view name) {
  const auto found =
      std::ranges::find_if(command.options, [&](const OptionSpec& option) { return option.flag.name == name; });
  return found == command.options.end() ? nullptr : &*found;
}

std::string unlinked_command(std::string_view name) {
  const auto* const command = find_command(name) == nullptr ? find_named(known_commands(), name) : nullptr;
  return command == nullptr ? "" : unlinked(name, command->component);
}

std::string unlinked_option(const CommandSpec* command, std::string_view name) {
  for (const auto& known : known_commands()) {
    if (command != nullptr && command->name != known.name) continue;
    const auto* const option = find_option(known, name);
    if (option != nullptr && !is_linked(*option)) return unlinked(name, option->flag.component);
  }
  return "";
}

RegisteredCommand::RegisteredCommand(std::string_view name, CommandFunction function) noexcept
    : name_(name), function_(function), next_(std::exchange(g_registered, this)) {}

CommandFunction RegisteredCommand::find(std::string_view name) noexcept {
  for (const auto* each = g_registered; each != nullptr; each = each->next_) {
    if (each->name_ == name) return each->function_;
  }
  return nullptr;
}

}  // namespace rehearse::cli
