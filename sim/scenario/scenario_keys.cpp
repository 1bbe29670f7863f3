// SPDX-License-Identifier: BSD-3-Clause
#include "scenario_keys.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/kinds.h"
#include "run/run_files.h"

namespace rehearse::sim {
namespace {

using kinds::at;

Value<Scenario> verdict() {
  std::vector<std::pair<std::string, Verdict>> verdicts;
  for (const auto each : all_verdicts()) verdicts.emplace_back(to_string(each), each);
  return kinds::choice<Verdict>(at(&Scenario::expect), std::move(verdicts));
}

Value<Scenario> arguments() {
  Value<Scenario> value{Form::texts, "texts"};
  value.set = [](Scenario& scenario, std::string_view text, Spelling) {
    scenario.arguments.emplace_back(text);
    return std::string();
  };
  value.print = [](const Scenario& scenario, Spelling) { return scenario.arguments; };
  return value;
}

ScenarioOption report_file(const ReportFile& file) {
  const bool always = file.written == Written::always;
  Value<Scenario> value{Form::flag, "true or false"};
  value.set = [&file](Scenario& scenario, std::string_view text, Spelling) {
    scenario.output.files.insert_or_assign(std::string(file.key), text == "true");
    return std::string();
  };
  value.print = [&file, always](const Scenario& scenario, Spelling) -> std::vector<std::string> {
    const bool wanted = scenario.output.wants(file.key);
    if (!always && !wanted) return {};
    return {wanted ? "true" : "false"};
  };
  std::string guide = fmt::format("whether `{}` is written", file.name);
  if (!always) {
    guide += "; `true` in real runs ([why](REAL.md))";
  } else if (file.events != Events::none) {
    guide += "; by default not for [large runs](#the-trace-and-the-flight-recorder)";
  }
  return {.key = file.key,
          .value = std::move(value),
          .guide = std::move(guide),
          .fallback = always ? "" : "`false`",
          .section = "output"};
}

Options<Scenario> all_rows() {
  Options<Scenario> rows = {
      {"program", kinds::text(at(&Scenario::program)), "a program of the executable"},
      {"executable", kinds::text(at(&Scenario::executable)),
       "the file or target that holds the program; errors name it", "`\"\"`"},
      {.key = "arguments",
       .value = arguments(),
       .guide = "the words of a script's own command line; behind the command, those after `--`",
       .fallback = "none",
       .unless_default = true,
       .flag = {"--argument", "WORD", "--epochs=3", "one word for the script itself, as those after -- are", "", 11}},
  };
  for (const auto& row : world_rows()) rows.push_back(within(&Scenario::world, row));
  rows.push_back({"expect", verdict(), ": the verdict that the run must have; then the exit code is 0", "", true});
  rows.push_back({.guide = "the program's own, which `list` prints", .section = kParametersSection});
  rows.push_back({.key = "directory",
                  .value = kinds::text(at(&Scenario::output, &OutputOptions::directory)),
                  .guide = "relative to the current directory",
                  .fallback = "`\"rehearse-out/<file>\"`",
                  .flag = {"--output", "DIR", "out", "instead of the scenario's [output] directory"},
                  .section = "output"});
  for (const auto& file : report_files()) rows.push_back(report_file(file));
  return rows;
}

std::vector<ScenarioSection> sections_of(Options<Scenario> rows) {
  std::vector<ScenarioSection> sections;
  for (auto& row : rows) {
    auto section = std::find_if(sections.begin(), sections.end(),
                                [&](const ScenarioSection& each) { return each.name == row.section; });
    if (section == sections.end()) section = sections.insert(section, {row.section, {}});
    section->rows.push_back(std::move(row));
  }
  return sections;
}

// "[world] ranks", "[parameters]", "[[fault]]"
std::string title_of(const ScenarioOption& row) {
  if (row.section.empty()) return std::string(row.key);
  const auto place =
      row.section == kFaultSection ? fmt::format("[[{}]]", row.section) : fmt::format("[{}]", row.section);
  return row.key.empty() ? place : fmt::format("{} {}", place, row.key);
}

}  // namespace

const std::vector<ScenarioSection>& scenario_sections() {
  static const std::vector<ScenarioSection> sections = sections_of(all_rows());
  return sections;
}

const ScenarioOption* find_scenario_flag(std::string_view flag) {
  for (const auto& section : scenario_sections()) {
    for (const auto& row : section.rows) {
      if (row.flag.name == flag) return &row;
    }
  }
  return nullptr;
}

std::string scenario_keys_as_markdown() {
  std::string text = "| key | default | values |\n|---|---|---|\n";
  const Scenario unset;
  for (const auto& section : scenario_sections()) {
    for (const auto& row : section.rows) {
      auto fallback = row.key.empty() ? "" : toml_value(row, unset);
      if (!fallback.empty()) fallback = fmt::format("`{}`", fallback);
      if (!row.fallback.empty()) fallback = row.fallback;
      std::string words;
      if (!row.value.words.empty()) words = fmt::format("`\"{}\"`", fmt::join(row.value.words, "\"`, `\""));
      text += fmt::format("| `{}` |{}{} | {}{} |\n", title_of(row), fallback.empty() ? "" : " ", fallback, words,
                          row.guide);
    }
  }
  return text;
}

}  // namespace rehearse::sim
