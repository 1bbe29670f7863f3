// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/sim/seed.h>

#include "run/run_files.h"
#include "scenario_keys.h"
#include "schedule/units.h"

namespace rehearse::sim {

// Returns a function that takes a scenario, and returns a reference to the field to which the chain of members leads.
template <class... Members>
constexpr auto at(Members... members) {
  return [=](auto& scenario) -> auto& { return (scenario.*....*members); };
}

}  // namespace rehearse::sim

// Makes rows of the table of keys, by the kind of their value. `field` comes from at(). `takes` is text for the guide.
// Some functions also take the text with which errors complete "it takes ..."; the others have their own.
namespace rehearse::sim::keys {

inline std::string toml_text(std::string_view text) { return in_quotes(text, std::string_view::npos); }

template <class Field>
ScenarioKey text(std::string_view name, std::string takes, Field field) {
  return {name, std::move(takes), [=](Section& section, Scenario& scenario) { section.text(name, field(scenario)); },
          [=](const Scenario& scenario) {
            const std::string& value = field(scenario);
            return value.empty() ? "" : toml_text(value);
          }};
}

template <class Field>
ScenarioKey path(std::string_view name, std::string takes, Field field) {
  return {name, std::move(takes),
          [=](Section& section, Scenario& scenario) {
            std::string value = field(scenario).string();
            section.text(name, value);
            field(scenario) = value;
          },
          [=](const Scenario& scenario) {
            const auto value = field(scenario).string();
            return value.empty() ? "" : toml_text(value);
          }};
}

inline std::string flag_text(bool value) { return value ? "true" : "false"; }
inline std::string flag_text(const std::optional<bool>& value) { return value ? flag_text(*value) : ""; }

// A key for a `bool` or a `std::optional<bool>`.
template <class Field>
ScenarioKey flag(std::string_view name, std::string takes, Field field) {
  return {name, std::move(takes), [=](Section& section, Scenario& scenario) { section.flag(name, field(scenario)); },
          [=](const Scenario& scenario) { return flag_text(field(scenario)); }};
}

template <class Field>
ScenarioKey integer(std::string_view name, std::int64_t least, std::int64_t most, std::string takes, Field field) {
  return {name, std::move(takes),
          [=](Section& section, Scenario& scenario) {
            auto& value = field(scenario);
            using Integer = std::remove_reference_t<decltype(value)>;
            value = static_cast<Integer>(section.integer(name, static_cast<std::int64_t>(value), least, most));
          },
          [=](const Scenario& scenario) { return fmt::format("{}", field(scenario)); }};
}

template <class Field>
ScenarioKey number(std::string_view name, double least, double most, std::string takes, Field field) {
  return {name, std::move(takes),
          [=](Section& section, Scenario& scenario) {
            field(scenario) = section.number(name, field(scenario), least, most);
          },
          [=](const Scenario& scenario) { return with_point(field(scenario)); }};
}

// One of several texts, each for one value. The guide adds `behind` after the list of texts.
template <class Value, class Field>
ScenarioKey choice(std::string_view name, std::vector<std::pair<std::string, Value>> choices, std::string_view behind,
                   Field field) {
  std::vector<std::string> texts;
  for (const auto& [text, value] : choices) texts.push_back(text);
  const auto index_of = [=](const Scenario& scenario) {
    const auto found =
        std::find_if(choices.begin(), choices.end(), [&](const auto& each) { return each.second == field(scenario); });
    return static_cast<std::size_t>(found - choices.begin());
  };
  return {name, fmt::format("`\"{}\"`{}", fmt::join(texts, "\"`, `\""), behind),
          [=, choices = std::move(choices)](Section& section, Scenario& scenario) {
            field(scenario) = choices[section.choice(name, texts, index_of(scenario))].second;
          },
          [=](const Scenario& scenario) { return toml_text(texts[index_of(scenario)]); }};
}

// Prints the key only if its value differs from the default, so that scenarios without the key print as before the key
// existed.
inline ScenarioKey unless_default(ScenarioKey key) {
  const std::string unprinted = key.print(Scenario());
  key.print = [unprinted, always = key.print](const Scenario& scenario) {
    auto text = always(scenario);
    return text == unprinted ? "" : text;
  };
  key.fallback = "";
  return key;
}

template <class Field>
ScenarioKey schedule(std::string_view name, Field field) {
  std::vector<std::string> texts;
  for (const auto each : all_schedules()) texts.emplace_back(to_string(each));
  return {name, fmt::format("`\"{}\"`", fmt::join(texts, "\"`, `\"")),
          [=](Section& section, Scenario& scenario) {
            if (section.find(name) != nullptr) field(scenario) = all_schedules()[section.choice(name, texts, 0)];
          },
          [=](const Scenario& scenario) { return field(scenario) ? toml_text(to_string(*field(scenario))) : ""; },
          "`\"random\"`; in sweeps the seeds [take turns](DETERMINISM.md#many-seeds)"};
}

// A duration that may be unset; then it is not printed.
template <class Field>
ScenarioKey optional_duration(std::string_view name, std::string takes, Field field) {
  return {name, std::move(takes),
          [=](Section& section, Scenario& scenario) {
            const auto* node = section.find(name);
            if (node == nullptr) return;
            const auto text = node->template value_exact<std::string>();
            field(scenario) = text ? units::parse_duration(*text) : std::nullopt;
            if (!field(scenario)) section.refuse(name, *node, "a duration, as in \"10ms\"");
          },
          [=](const Scenario& scenario) {
            return field(scenario) ? toml_text(units::print_duration(*field(scenario))) : "";
          }};
}

template <class Field>
ScenarioKey seed(std::string_view name, std::string takes, Field field) {
  return {name, std::move(takes),
          [=](Section& section, Scenario& scenario) {
            const auto* node = section.find(name);
            if (node == nullptr) return;
            const auto integer = node->template value_exact<std::int64_t>();
            const auto text = node->template value_exact<std::string>();
            if (integer && *integer >= 0) {
              field(scenario) = static_cast<std::uint64_t>(*integer);
            } else if (const auto parsed = text ? parse_seed(*text) : std::nullopt) {
              field(scenario) = *parsed;
            } else {
              section.refuse(name, *node, "an integer of 0 or more, or one in a text, as in \"0x8f3a\"");
            }
          },
          [=](const Scenario& scenario) {
            const auto value = field(scenario);
            return std::in_range<std::int64_t>(value) ? fmt::format("{}", value) : fmt::format("\"{:#x}\"", value);
          }};
}

// A text with a unit. `parse` returns nothing for a text that it does not accept.
template <class Parse, class Print, class Field>
ScenarioKey quantity(std::string_view name, std::string in_errors, std::string takes, Parse parse, Print print,
                     Field field) {
  return {name, std::move(takes),
          [=, in_errors = std::move(in_errors)](Section& section, Scenario& scenario) {
            section.quantity(name, in_errors, [&](std::string_view text) {
              const auto parsed = parse(text);
              if (parsed) field(scenario) = *parsed;
              return parsed.has_value();
            });
          },
          [=](const Scenario& scenario) { return toml_text(print(field(scenario))); }};
}

template <class Field>
ScenarioKey duration(std::string_view name, std::string_view example, std::string takes, Field field) {
  return quantity(name, fmt::format("a duration in ns, us, ms, s, min or h, as in \"{}\"", example), std::move(takes),
                  units::parse_duration, units::print_duration, field);
}

template <class Field>
ScenarioKey milliseconds(std::string_view name, std::string takes, Field field) {
  const auto parse = [](std::string_view text) -> std::optional<std::chrono::milliseconds> {
    const auto parsed = units::parse_duration(text);
    if (!parsed) return std::nullopt;
    const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
    return whole == *parsed ? std::optional(whole) : std::nullopt;
  };
  return quantity(name, "a duration of whole milliseconds, as in \"30min\", or \"0s\" for none", std::move(takes),
                  parse, units::print_duration, field);
}

template <class Field>
ScenarioKey stack(std::string_view name, std::string takes, Field field) {
  const auto parse = [](std::string_view text) -> std::optional<std::size_t> {
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
    constexpr std::uint64_t kMost = std::uint64_t{16} << 30;
    const auto parsed = units::parse_bytes(text);
    return parsed && *parsed >= kLeast && *parsed <= kMost ? parsed : std::nullopt;
  };
  return quantity(name, "a size from 64KiB to 16GiB, as in \"8MiB\"", std::move(takes), parse, units::print_bytes,
                  field);
}

// A size. 0 means no limit, and is not printed.
template <class Field>
ScenarioKey memory(std::string_view name, std::string takes, Field field) {
  const auto parse = [](std::string_view text) -> std::optional<std::uint64_t> {
    const auto parsed = units::parse_bytes(text);
    return parsed && *parsed > 0 ? parsed : std::nullopt;
  };
  auto key = quantity(name, "a size above 0, as in \"80GiB\"", std::move(takes), parse, units::print_bytes, field);
  key.print = [=, always = key.print](const Scenario& scenario) { return field(scenario) > 0 ? always(scenario) : ""; };
  key.fallback = "no limit";
  return key;
}

// A rate. 0 means that the model has none, and is not printed.
template <class Parse, class Print, class Field>
ScenarioKey rate(std::string_view name, std::string in_errors, std::string takes, Parse parse, Print print,
                 Field field) {
  auto key = quantity(name, std::move(in_errors), std::move(takes), parse, print, field);
  key.print = [=, always = key.print](const Scenario& scenario) { return field(scenario) > 0 ? always(scenario) : ""; };
  const bool none = key.print(Scenario()).empty();
  if (none) key.fallback = "none: no time";
  return key;
}

template <class Field>
ScenarioKey bandwidth(std::string_view name, std::string in_errors, std::string takes, Field field) {
  return rate(name, std::move(in_errors), std::move(takes), units::parse_bandwidth, units::print_bandwidth, field);
}

template <class Field>
ScenarioKey flops(std::string_view name, std::string takes, Field field) {
  return rate(name, "operations a second, as in \"20TFLOP/s\"", std::move(takes), units::parse_flops,
              units::print_flops, field);
}

// An array of texts, one for each fault family.
template <class Field>
ScenarioKey fault_families(std::string_view name, std::string takes, Field field) {
  return {name, std::move(takes),
          [=](Section& section, Scenario& scenario) {
            const auto* node = section.find(name);
            if (node == nullptr) return;
            constexpr std::string_view kTakes = "faults in an array, as in [\"crash\", \"pause for=5ms\"]";
            const auto* const texts = node->as_array();
            if (texts == nullptr) return section.refuse(name, *node, kTakes);
            for (const auto& each : *texts) {
              const auto text = each.value_exact<std::string>();
              if (!text) return section.refuse(name, *node, kTakes);
              try {
                field(scenario).push_back(parse_fault_family(*text));
              } catch (const FaultError& error) {
                section.refuse(name, each, fmt::format("{}: {}", kTakes, error.what()));
              }
            }
          },
          [=](const Scenario& scenario) {
            std::vector<std::string> texts;
            for (const auto& family : field(scenario)) texts.push_back(toml_text(to_string(family)));
            return texts.empty() ? "" : fmt::format("[{}]", fmt::join(texts, ", "));
          }};
}

inline ScenarioKey report_file(const ReportFile& file) {
  const bool always = file.written == Written::always;
  std::string takes = fmt::format("whether `{}` is written", file.name);
  if (!always) {
    takes += "; `true` in real runs ([why](REAL.md))";
  } else if (file.events != Events::none) {
    takes += "; by default not for [large runs](#the-trace-and-the-flight-recorder)";
  }
  return {file.key, std::move(takes),
          [&file](Section& section, Scenario& scenario) {
            std::optional<bool> said;
            section.flag(file.key, said);
            if (said) scenario.output.files.insert_or_assign(std::string(file.key), *said);
          },
          [&file, always](const Scenario& scenario) {
            const bool wanted = scenario.output.wants(file.key);
            return always || wanted ? flag_text(wanted) : "";
          },
          always ? "" : "`false`"};
}

}  // namespace rehearse::sim::keys
