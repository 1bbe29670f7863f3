// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/scenario.h>

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/job/parameter_text.h>
#include <rehearse/job/program.h>
#include <rehearse/job/spelling.h>
#include <rehearse/sim/input_file.h>
#include <rehearse/sim/seed.h>

#include "run/run_files.h"
#include "scenario_parameters.h"
#include "scenario_reader.h"
#include "units.h"

namespace rehearse::sim {
namespace {

constexpr std::int64_t kRanksMost = 65'536;
constexpr std::size_t kStackLeast = std::size_t{64} << 10;
constexpr std::size_t kStackMost = std::size_t{16} << 30;
constexpr std::int64_t kIntegerMost = std::numeric_limits<std::int64_t>::max();

// One of the file's [tables]; null when it has none of that name, or something else under it.
const toml::table* subtable(Section& top, const toml::table& file, std::string_view name) {
  const auto* node = top.find(name);
  if (node != nullptr && !node->is_table()) top.refuse(name, *node, "a table");
  return file[name].as_table();
}

void read_seed(Section& section, std::uint64_t& seed) {
  const auto* node = section.find("seed");
  if (node == nullptr) return;
  const auto integer = node->value_exact<std::int64_t>();
  const auto text = node->value_exact<std::string>();
  if (integer && *integer >= 0) {
    seed = static_cast<std::uint64_t>(*integer);
  } else if (const auto parsed = text ? parse_seed(*text) : std::nullopt) {
    seed = *parsed;
  } else {
    section.refuse("seed", *node, "an integer of 0 or more, or one in a text, as in \"0x8f3a\"");
  }
}

void read_world(Section& section, WorldOptions& world) {
  world.ranks = static_cast<int>(section.integer("ranks", world.ranks, 1, kRanksMost));
  read_seed(section, world.seed);
  std::vector<std::string> schedules;
  for (const auto schedule : all_schedules()) schedules.emplace_back(to_string(schedule));
  world.schedule = all_schedules()[section.choice("schedule", schedules, static_cast<std::size_t>(world.schedule))];
  section.flag("preempt", world.preempt);
  section.quantity("timeout", "a duration of whole milliseconds, as in \"30min\", or \"0s\" for none", [&](auto text) {
    const auto parsed = units::parse_duration(text);
    const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(parsed.value_or(VirtualDuration(1)));
    if (whole != parsed) return false;
    world.timeout = whole;
    return true;
  });
  section.flag("buffered_sends", world.buffered_sends);
  section.flag("coalesced_as_one", world.coalesced_as_one);
  section.quantity("stack", "a size from 64KiB to 16GiB, as in \"8MiB\"", [&](auto text) {
    const auto parsed = units::parse_bytes(text);
    if (!parsed || *parsed < kStackLeast || *parsed > kStackMost) return false;
    world.stack_bytes = *parsed;
    return true;
  });
  world.steps_max = static_cast<std::uint64_t>(
      section.integer("steps_max", static_cast<std::int64_t>(world.steps_max), 1, kIntegerMost));
}

void read_network(Section& section, NetworkModel& network) {
  section.quantity("latency", "a duration in ns, us, ms, s, min or h, as in \"5us\"", [&](auto text) {
    const auto parsed = units::parse_duration(text);
    if (parsed) network.latency = *parsed;
    return parsed.has_value();
  });
  section.quantity("bandwidth", "a bandwidth, as in \"50GB/s\" or \"400Gbit/s\"", [&](auto text) {
    const auto parsed = units::parse_bandwidth(text);
    if (parsed) network.bytes_per_second = *parsed;
    return parsed.has_value();
  });
  network.jitter = section.number("jitter", network.jitter, 0, 100);
}

void read_compute(Section& section, ComputeModel& compute) {
  section.quantity("flops", "operations a second, as in \"20TFLOP/s\"", [&](auto text) {
    const auto parsed = units::parse_flops(text);
    if (parsed) compute.flops_per_second = *parsed;
    return parsed.has_value();
  });
  section.quantity("bandwidth", "a bandwidth, as in \"2TB/s\"", [&](auto text) {
    const auto parsed = units::parse_bandwidth(text);
    if (parsed) compute.bytes_per_second = *parsed;
    return parsed.has_value();
  });
  section.quantity("per_operator", "a duration in ns, us, ms, s, min or h, as in \"5us\"", [&](auto text) {
    const auto parsed = units::parse_duration(text);
    if (parsed) compute.per_operator = *parsed;
    return parsed.has_value();
  });
}

void read_compile(Section& section, WorldOptions& world) {
  section.quantity("per_node", "a duration in ns, us, ms, s, min or h, as in \"2ms\"", [&](auto text) {
    const auto parsed = units::parse_duration(text);
    if (parsed) world.compile_time.per_node = *parsed;
    return parsed.has_value();
  });
  world.compile_time.jitter = section.number("jitter", world.compile_time.jitter, 0, 100);
  const bool fails = section.choice("divergence", {"remark", "fail"}, 0) == 1;
  world.compile_divergence = fails ? CompileDivergence::fail : CompileDivergence::remark;
}

void read_output(Section& section, OutputOptions& output) {
  std::string directory = output.directory.string();
  section.text("directory", directory);
  output.directory = directory;
  for (const auto& file : report_files()) {
    std::optional<bool> said;
    section.flag(file.key, said);
    if (said) output.files.insert_or_assign(std::string(file.key), *said);
  }
}

// Why there is no such program, and what to do about it.
std::string unknown_program(const std::string& name, const std::string& executable) {
  std::vector<std::string> names;
  for (const auto* program : programs()) names.push_back(program->name);
  if (!executable.empty()) {
    return fmt::format("program {} is not in this executable; it is in {}: run the scenario with that one",
                       in_quotes(name), in_quotes(executable));
  }
  const auto nearest = nearest_spelling(name, names);
  return fmt::format(
      "program {} is not in this executable{}; it has {}. Run the scenario with the executable whose "
      "source says "
      "REHEARSE_PROGRAM({})",
      in_quotes(name), nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest),
      names.empty() ? "no programs" : fmt::format("{}", fmt::join(names, ", ")), name);
}

const Program* read_program(Problems& problems, Section& top, const toml::table& file, Scenario& scenario) {
  top.text("program", scenario.program);
  top.text("executable", scenario.executable);
  const auto* node = file.get("program");
  if (node == nullptr) {
    problems.add(0, "there is no key \"program\": it names what to run, as in program = \"lm_ddp\"");
  } else if (!scenario.program.empty()) {
    if (const auto* program = find_program(scenario.program)) return program;
    problems.add(line_of(*node), unknown_program(scenario.program, scenario.executable));
  }
  return nullptr;
}

// toml++ takes one step of recursion for each part of a key, and no scenario has more than two.
void refuse_deep_keys(std::string_view text, const std::string& origin) {
  constexpr std::ptrdiff_t kDotsMax = 1'000;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto key = text.substr(0, std::min(text.find('='), end));
    const auto dots = std::count(key.begin(), key.end(), '.');
    if (dots > kDotsMax) {
      throw ScenarioError({fmt::format(
          "{}:{}: not TOML that is read here: a key of {} parts; a key of a scenario has one, under [world], "
          "[network], [compute], [compile], [parameters] or [output]",
          origin, line, dots + 1)});
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

toml::table parse_toml(std::string_view text, const std::string& origin) {
  refuse_deep_keys(text, origin);
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    const bool too_large = error.description().find("not representable in 64 bits") != std::string_view::npos;
    throw ScenarioError({fmt::format("{}:{}:{}: not TOML: {}{}", origin, at.line, at.column, error.description(),
                                     too_large ? "; a seed above 2^63 - 1 is given as a text, in quotes" : "")});
  }
}

}  // namespace

ScenarioError::ScenarioError(std::vector<std::string> problems)
    : std::runtime_error(fmt::format("{}", fmt::join(problems, "\n"))), problems_(std::move(problems)) {}

Scenario parse_scenario(std::string_view text, const std::string& origin, const std::filesystem::path& base) {
  const toml::table file = parse_toml(text, origin);
  Problems problems(origin);
  Scenario scenario;
  scenario.output.directory = std::filesystem::path("rehearse-out") / std::filesystem::path(origin).stem();

  Section top(problems, "", &file);
  const Program* program = read_program(problems, top, file, scenario);
  Section world(problems, "world", subtable(top, file, "world"));
  read_world(world, scenario.world);
  Section network(problems, "network", subtable(top, file, "network"));
  read_network(network, scenario.world.network);
  Section compute(problems, "compute", subtable(top, file, "compute"));
  read_compute(compute, scenario.world.compute);
  Section compile(problems, "compile", subtable(top, file, "compile"));
  read_compile(compile, scenario.world);
  const auto* parameters = subtable(top, file, "parameters");
  Section output(problems, "output", subtable(top, file, "output"));
  read_output(output, scenario.output);
  if (program != nullptr) {
    const auto& specs = program->spec.parameters;
    scenario.parameters = read_parameters(problems, parameters, base, specs);
    for (const auto& spec : specs) problems.note_home(spec.name, "parameters");
  }
  for (auto* section : {&top, &world, &network, &compute, &compile, &output}) section->finish();

  if (!problems.empty()) throw ScenarioError(problems.sorted());
  return scenario;
}

Scenario read_scenario(const std::filesystem::path& file) {
  constexpr std::size_t kBytesMost = std::size_t{16} << 20;
  std::string text;
  try {
    text = read_input(file, "scenario", [](std::string_view) { return kBytesMost; });
  } catch (const InputError& error) {
    throw ScenarioError({error.what()});
  }
  return parse_scenario(text, file.string(), file.parent_path());
}

}  // namespace rehearse::sim
