// SPDX-License-Identifier: BSD-3-Clause
#include "arguments.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <rehearse/job/spelling.h>
#include <rehearse/sim/seed.h>
#include <CLI/CLI.hpp>

#include "console.h"

namespace rehearse::cli {
namespace {

constexpr int kRanksMost = 65'536;

// Values as they were typed: what is wrong with one is said in our own words.
struct Typed {
  std::string seed, ranks;
};

void add_output_options(CLI::App& command, Arguments& arguments) {
  command.add_flag("--json", arguments.json, "print the report as JSON, and nothing else on stdout");
  command.add_flag("--no-color", arguments.no_color, "no colours, on a terminal too");
}

void add_run_options(CLI::App& command, Arguments& arguments, Typed& typed) {
  command.add_option("SCENARIO", arguments.file, "a scenario file (TOML)");
  command.add_option("--seed", typed.seed, "instead of the scenario's [world] seed")->type_name("N");
  command.add_option("--ranks", typed.ranks, "instead of the scenario's [world] ranks")->type_name("N");
  command.add_flag("--check-determinism", arguments.check_determinism, "run twice and compare");
  command.add_option("--output", arguments.output, "instead of the scenario's [output] directory")
      ->type_name("DIR");
  command.add_flag("--quiet", arguments.quiet, "no banner and no progress");
  add_output_options(command, arguments);
}

void add_commands(CLI::App& app, Arguments& arguments, Typed& typed) {
  auto add = [&](const char* name, const char* summary, Command which) {
    auto* command = app.add_subcommand(name, summary);
    command->set_help_flag("--help", "print this and exit");
    command->allow_extras();
    command->callback([&arguments, which] { arguments.command = which; });
    return command;
  };
  add_run_options(*add("run", "run a scenario; leaves report, trace and decision log", Command::run),
                  arguments, typed);

  auto* replay = add("replay", "run again what a decision log holds, decision by decision", Command::replay);
  replay->add_option("LOG", arguments.file, "a decision log (run.rlog)");
  replay->add_flag("--quiet", arguments.quiet, "no banner and no progress");
  add_output_options(*replay, arguments);

  auto* explain = add("explain", "print the report in a decision log, without running", Command::explain);
  explain->add_option("LOG", arguments.file, "a decision log (run.rlog)");
  add_output_options(*explain, arguments);

  add("list", "print the programs of this executable and their parameters", Command::list);
}

std::string usage_line(const std::string& self, const CLI::App* command) {
  if (command == nullptr)
    return fmt::format("usage: {} run|replay|explain|list ...   (see {} --help)", self, self);
  const auto name = command->get_name();
  const auto* operand = name == "run" ? " SCENARIO" : name == "list" ? "" : " LOG";
  return fmt::format("usage: {} {}{} [options]   (see {} {} --help)", self, name, operand, self, name);
}

[[noreturn]] void refuse(const std::string& self, const CLI::App* command, const std::string& what) {
  const auto where = command == nullptr ? self : fmt::format("{} {}", self, command->get_name());
  throw UsageError(fmt::format("{}: {}\n{}", where, what, usage_line(self, command)));
}

std::string hint(const std::string& word, const std::vector<std::string>& among) {
  const auto nearest = nearest_spelling(word, among);
  return nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest);
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What is left over once all known words are taken.
void refuse_extras(const std::string& self, const CLI::App& app, const CLI::App* command) {
  const auto& extras = command == nullptr ? app.remaining() : command->remaining();
  if (extras.empty()) return;
  for (const auto& extra : extras) {
    if (!extra.starts_with("-")) continue;
    const auto name = extra.substr(0, extra.find('='));
    refuse(
        self, command,
        fmt::format("there is no option \"{}\"{}", name, hint(name, option_names(command ? *command : app))));
  }
  if (command == nullptr) {
    const auto close = hint(extras[0], {"run", "replay", "explain", "list"});
    refuse(self, command, fmt::format("there is no command \"{}\"{}", extras[0], close));
  }
  refuse(self, command, fmt::format("\"{}\" is one word too many", extras[0]));
}

void take_values(Arguments& arguments, const Typed& typed, const CLI::App* command) {
  if (!typed.seed.empty()) {
    arguments.seed = sim::parse_seed(typed.seed);
    if (!arguments.seed) {
      refuse(arguments.self, command,
             fmt::format("--seed is \"{}\"; it takes {}", typed.seed, sim::kSeedTakes));
    }
  }
  if (!typed.ranks.empty()) {
    int ranks = 0;
    const auto* end = typed.ranks.data() + typed.ranks.size();
    const auto parsed = std::from_chars(typed.ranks.data(), end, ranks);
    if (parsed.ec != std::errc() || parsed.ptr != end || ranks < 1 || ranks > kRanksMost) {
      refuse(arguments.self, command,
             fmt::format("--ranks is \"{}\"; it takes an integer from 1 to {}", typed.ranks, kRanksMost));
    }
    arguments.ranks = ranks;
  }
}

}  // namespace

Arguments parse_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  Typed typed;
  arguments.self = argc > 0 ? argv[0] : "rehearse";
  CLI::App app("Runs distributed training programs with every rank as a fiber of this process.",
               arguments.self);
  app.set_help_flag("--help", "print this and exit");
  app.set_version_flag("--version", "rehearse " REHEARSE_VERSION, "print the version and exit");
  app.require_subcommand(0, 1);
  app.allow_extras();
  add_commands(app, arguments, typed);

  auto chosen = [&]() -> const CLI::App* {
    const auto found = app.get_subcommands();
    return found.empty() ? nullptr : found.front();
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked{app.help()};
  } catch (const CLI::CallForVersion& version) {
    throw HelpAsked{fmt::format("{}\n", version.what())};
  } catch (const CLI::ParseError& error) {
    refuse(arguments.self, chosen(), error.what());
  }

  const auto* command = chosen();
  refuse_extras(arguments.self, app, command);
  if (command == nullptr) refuse(arguments.self, nullptr, "which command?");
  if (arguments.file.empty() && arguments.command != Command::list) {
    refuse(arguments.self, command,
           arguments.command == Command::run ? "which scenario?" : "which decision log?");
  }
  take_values(arguments, typed, command);
  return arguments;
}

}  // namespace rehearse::cli
