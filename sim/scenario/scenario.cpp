// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/scenario.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/job/program.h>
#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/job/spelling.h>
#include <rehearse_internal/sim/input_file.h>

#include "scenario_faults.h"
#include "scenario_keys.h"
#include "scenario_reader.h"

namespace rehearse::sim {
namespace {

// One of the file's [tables]. Null if the file has no table with that name. A value of another kind under that name is
// a problem.
const toml::table* subtable(Section& top, const toml::table& file, std::string_view name) {
  const auto* node = top.find(name);
  if (node != nullptr && !node->is_table()) top.refuse(name, *node, "; it takes a table");
  return file[name].as_table();
}

std::string unknown_program(const std::string& name, const std::string& executable) {
  const auto names = program_names();
  if (!executable.empty()) {
    return fmt::format("program {} is not in this executable; it is in {}: run the scenario with that one",
                       in_quotes(name), in_quotes(executable));
  }
  return fmt::format(
      "program {} is not in this executable{}; it has {}. Run the scenario with the executable whose "
      "source says "
      "REHEARSE_PROGRAM({})",
      in_quotes(name), did_you_mean(name, names),
      names.empty() ? "no programs" : fmt::format("{}", fmt::join(names, ", ")), name);
}

const Program* program_of(Problems& problems, const toml::table& file, const Scenario& scenario) {
  const auto* node = file.get("program");
  if (node == nullptr) {
    problems.add(0, "there is no key \"program\": it names what to run, as in program = \"lm_ddp\"");
  } else if (!scenario.program.empty()) {
    if (const auto* program = find_program(scenario.program)) return program;
    problems.add(line_of(*node), unknown_program(scenario.program, scenario.executable));
  }
  return nullptr;
}

// For example "[world], [network] or [output]".
std::string places_of_keys() {
  std::vector<std::string> places;
  for (const auto& section : scenario_sections()) {
    if (section.name.empty()) continue;
    const auto place = fmt::format("[{}]", section.name);
    places.push_back(section.name == kFaultSection ? fmt::format("[{}]", place) : place);
  }
  const auto last = std::move(places.back());
  places.pop_back();
  return fmt::format("{} or {}", fmt::join(places, ", "), last);
}

// toml++ recurses once for each part of a key, so a key of very many parts would overflow the stack. Keys of scenarios
// have at most two parts.
void refuse_deep_keys(std::string_view text, const std::string& origin) {
  constexpr std::ptrdiff_t kDotsMax = 1'000;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto key = text.substr(0, std::min(text.find('='), end));
    const auto dots = std::ranges::count(key, '.');
    if (dots > kDotsMax) {
      throw ScenarioError(
          {fmt::format("{}:{}: not TOML that is read here: a key of {} parts; a key of a scenario has one, under {}",
                       origin, line, dots + 1, places_of_keys())});
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

ParameterValue resolved(ParameterValue value, const std::filesystem::path& base) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return value;
  const bool path = *text == "." || *text == ".." || text->starts_with("./") || text->starts_with("../");
  return path ? (base / *text).lexically_normal().string() : *text;
}

// The value of one parameter. If it does not fit, adds a problem and returns nothing.
std::optional<Parameters::Given> read_parameter(Problems& problems, const toml::key& key, const toml::node& node,
                                                const std::filesystem::path& base,
                                                const std::vector<ParameterSpec>& specs) {
  const auto line = key.source().begin.line;
  const std::string name(key.str());
  const auto spec = std::ranges::find_if(specs, [&](const auto& each) { return each.name == name; });
  const auto value = value_of(node);
  if (spec != specs.end() && !value) {
    problems.add(line,
                 fmt::format("parameter {} is {}; it takes {}", in_quotes(name), shown(node), what_it_takes(*spec)));
    return std::nullopt;
  }
  Parameters::Given given{value ? resolved(*value, base) : ParameterValue(),
                          fmt::format("{}:{}", problems.origin(), line)};
  try {
    static_cast<void>(Parameters(specs, {{name, given}}));  // checks this value alone, for an error with its line
    return given;
  } catch (const ParameterError& error) {
    problems.add_located(line, error.what() + problems.home_hint(name));
    return std::nullopt;
  }
}

// Reads the [parameters] of a scenario (null: it has none) for a program that takes `specs`. Adds each problem, with
// its line, to `problems`; a parameter with a problem keeps its default. Resolves texts that are relative paths (".",
// "..", "./x", "../x") against `base`.
Parameters read_parameters(Problems& problems, const toml::table* table, const std::filesystem::path& base,
                           const std::vector<ParameterSpec>& specs) {
  std::map<std::string, Parameters::Given> good;
  if (table == nullptr) return Parameters(specs, good);
  for (const auto& [key, node] : *table) {
    if (const auto given = read_parameter(problems, key, node, base, specs)) {
      good.emplace(std::string(key.str()), *given);
    }
  }
  return Parameters(specs, good);
}

}  // namespace

ScenarioError::ScenarioError(std::vector<std::string> problems)
    : std::runtime_error(fmt::format("{}", fmt::join(problems, "\n"))), problems_(std::move(problems)) {}

Scenario parse_scenario(std::string_view text, const std::string& origin, const std::filesystem::path& base) {
  const toml::table file = parse_toml(text, origin);
  Problems problems(origin);
  Scenario scenario;
  scenario.output.directory = std::filesystem::path("rehearse-out") / std::filesystem::path(origin).stem();

  std::vector<Section> sections;  // the top level first
  const toml::table* parameters = nullptr;
  for (const auto& section : scenario_sections()) {
    const bool is_top = section.name.empty();
    if (section.name == kFaultSection) {
      scenario.world.faults = read_faults(problems, sections.front().find(section.name));
      continue;
    }
    const auto* table = is_top ? &file : subtable(sections.front(), file, section.name);
    if (section.name == kParametersSection) {
      parameters = table;
      continue;
    }
    auto& reader = sections.emplace_back(problems, std::string(section.name), table);
    for (const auto& row : section.rows) reader.read(row, scenario);
  }
  if (const auto* program = program_of(problems, file, scenario)) {
    const auto& specs = program->spec.parameters;
    scenario.parameters = read_parameters(problems, parameters, base, specs);
    for (const auto& spec : specs) problems.note_home(spec.name, std::string(kParametersSection));
  }
  for (auto& section : sections) section.finish();

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
