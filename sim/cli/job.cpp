// SPDX-License-Identifier: BSD-3-Clause
#include "cli/job.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <rehearse/job/program.h>
#include <rehearse_internal/job/spelling.h>

#include "cli/command.h"
#include "cli/grammar/usage_error.h"
#include "cli/terminal/progress.h"

namespace rehearse::cli {
namespace {

// Removes the redrawn progress line, however the run ends.
struct Cleared {
  Progress& progress;
  ~Cleared() { progress.clear(); }
};

// Suggests a program, or a file beside a scenario file that does not exist.
std::string meant_by(const std::filesystem::path& file) {
  const auto name = file.filename().string();
  if (file.extension().empty()) {
    if (const auto near = nearest_spelling(name, program_names()); !near.empty())
      return fmt::format(" (did you mean the program \"{}\"?)", near);
  }
  std::vector<std::string> names;
  std::error_code ignored;
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  auto nearest = nearest_spelling(name, names);
  if (nearest.empty()) nearest = nearest_spelling(name + ".toml", names);
  return nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", (file.parent_path() / nearest).string());
}

// The scenario in the file or, for the name of a program, this program with all defaults.
sim::Scenario scenario_called(const std::string& name) {
  if (find_program(name) != nullptr) return sim::parse_scenario(fmt::format("program = \"{}\"", name), name);
  std::error_code error;
  if (!std::filesystem::exists(name, error) && !error)
    throw UsageError(fmt::format("{}: cannot be read: No such file or directory{}", name, meant_by(name)));
  return sim::read_scenario(name);
}

std::string word_of(const GivenOption& given) {
  const auto& flag = given.option->flag;
  return given.text == flag.bare ? std::string(flag.name) : fmt::format("{}={}", flag.name, shell_word(given.text));
}

// Refuses what only a simulation can do. Allows settings that a scenario for both modes may contain, such as [checks];
// the report of a real run says that they did not apply.
void require_none_of_simulation(const Arguments& arguments, const WorldOptions& world) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("{}: {} works in simulations only, and this run is real", arguments.operand, what));
  };
  if (!world.faults.empty()) refuse(fmt::format("fault \"{}\"", to_string(world.faults.front())));
  for (const auto& given : arguments.given) {
    auto* const only = given.option->simulation_only;
    if (only != nullptr && only(world)) refuse(word_of(given));
  }
  if (world.swarm.on) refuse("[swarm] on");
}

}  // namespace

void require_no_folder(const std::string& log) {
  const auto inside = std::filesystem::path(log) / "run.rlog";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(inside, ignored)) return;
  throw UsageError(fmt::format("{}: is a folder; the log in it is {}", log, inside.string()));
}

sim::Scenario scenario_of(const Arguments& arguments) {
  if (std::filesystem::path(arguments.operand).extension() == ".rlog") {
    throw UsageError(fmt::format("{}: is a decision log, not a scenario; run it again with {} replay {}",
                                 arguments.operand, name_of(arguments.self), shell_word(arguments.operand)));
  }
  auto scenario = scenario_called(arguments.operand);
  set_given(arguments, scenario);
  if (arguments.gives("--swarm") && scenario.world.swarm.families.empty()) {
    throw UsageError(
        fmt::format("{}: --swarm draws from the scenario's [swarm] families, and it has none, as in "
                    "families = [\"crash\", \"pause for=5ms\"]",
                    arguments.operand));
  }
  if (scenario.world.mode == Mode::real) require_none_of_simulation(arguments, scenario.world);
  if (!scenario.arguments.empty() && !find_program(scenario.program)->spec.takes_arguments) {
    throw UsageError(fmt::format("{}: program {} takes no arguments of its own, such as \"{}\"; it has [parameters]",
                                 arguments.operand, scenario.program, scenario.arguments.front()));
  }
  // Refuses what no world can have, before the caller touches the files of an earlier run.
  try {
    [[maybe_unused]] const World possible(scenario.world);
  } catch (const FaultError& error) {
    throw UsageError(fmt::format("{}: {}", arguments.operand, error.what()));
  }
  return scenario;
}

void set_given(const Arguments& arguments, sim::Scenario& scenario) {
  for (const auto& [option, text] : arguments.given) option->value.set(scenario, text, sim::Spelling::typed);
}

std::vector<std::string> options_given(const Arguments& arguments) {
  std::vector<std::string> options;
  for (const auto& given : arguments.given) {
    const auto& flag = given.option->flag;
    const bool is_implied = flag.name == "--real" && arguments.gives("--with");
    if (flag.place != 0 && !is_implied) options.push_back(word_of(given));
  }
  const int runs = arguments.check_determinism;
  if (runs != 0) options.push_back(runs == 2 ? "--check-determinism" : fmt::format("--check-determinism={}", runs));
  return options;
}

std::string seed_replay_line(const Arguments& arguments) {
  auto line = fmt::format("{} replay {}", command_word(arguments.self), shell_word(arguments.operand));
  for (const auto& option : options_given(arguments)) line += " " + option;
  return line;
}

void resolve(const WorldOptions& world, Arguments& arguments) {
  arguments.give(*sim::find_scenario_flag("--schedule"), to_string(sim::strategy_of(world)));
}

void schedule_as_sweeps_do(sim::Scenario& scenario, const sim::ProbedSteps& probed) {
  sim::take(sim::strategy_among_many(scenario.world, probed), scenario.world);
}

void require_simulation(const sim::Scenario& scenario, const std::string& file, std::string_view what) {
  if (scenario.world.mode == Mode::simulation) return;
  throw UsageError(
      fmt::format("{}: mode is \"real\", and {} needs the simulation: a real run cannot repeat a seed", file, what));
}

std::string banner(const sim::Scenario& scenario) {
  const auto& world = scenario.world;
  auto how = schedule_text(world);
  if (world.mode == Mode::real)
    how += fmt::format(" with={}", transport_names()[static_cast<std::size_t>(world.transport)]);
  return fmt::format("rehearse {} program={} seed={} {}={} ranks={}\n", REHEARSE_VERSION, scenario.program, world.seed,
                     world.mode == Mode::real ? "mode" : "schedule", how, world.ranks);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_word(const std::string& self) { return self.starts_with(kPythonCommand) ? self : shell_word(self); }

sim::RunLog begun_log(const sim::Scenario& scenario, const Arguments& arguments) {
  sim::RunLog log;
  log.program = scenario.program;
  log.seed = scenario.world.seed;
  log.build = sim::executable_build_id();
  log.scenario_path = arguments.operand;
  log.scenario_text = sim::to_toml(scenario);
  log.options = options_given(arguments);
  return log;
}

sim::Attempt run_scenario(const sim::Scenario& scenario, Console& console, Oracle* answers) {
  const Program& program = *find_program(scenario.program);
  Progress progress(console.notes_on_terminal(), [&](std::string_view text) { console.note(text); });
  const Cleared cleared{progress};
  sim::AttemptOptions options{.program = scenario.program, .world = scenario.world};
  options.world.scratch = scenario.output.directory / "scratch";
  options.keep_calls = scenario.world.keep_all_events;
  options.world.keep_all_events = options.keep_calls || scenario.output.needs_all_events();
  options.show = [&](std::int64_t done, std::int64_t total, std::string_view text) {
    progress.show(done, total, text);
  };
  std::optional<Console::Silence> silence;
  options.say_repeat = [&] {
    progress.clear();
    console.note("repeating the run without its output, to find the lines of its calls\n");
    silence.emplace();
  };
  return sim::run_once(
      options,
      [&](RankContext& context) {
        auto parameters = scenario.parameters.in_scratch([&] { return context.scratch_folder().string(); });
        parameters.set_arguments(scenario.arguments);
        program.spec.body(context, parameters);
      },
      answers);
}

void write_run_files(const OutputFolder& folder, const sim::Scenario& scenario, const sim::Attempt& attempt,
                     sim::RunLog log) {
  sim::write_report_files(folder.path(), scenario.output,
                          {attempt.report, &attempt.events(), &attempt.world->results(),
                           &attempt.world->explained_events(), &attempt.world->compiled()});
  log.finished = {attempt.report, attempt.path.decisions};
  sim::write_run_log(folder.log(), log);
}

}  // namespace rehearse::cli
