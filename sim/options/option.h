// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// One row for each option: how a scenario file, the command line and the environment spell it, what it takes, and what
// it sets. Whoever reads, prints, completes or documents options reads these rows.
namespace rehearse {

struct WorldOptions;

}  // namespace rehearse

namespace rehearse::sim {

// Where a value is spelled: in a scenario file, or typed by the user, behind a flag or in a variable.
enum class Spelling { file, typed };

// How TOML writes a value.
enum class Form { text, flag, integer, number, integer_or_text, texts };

template <class Target>
struct Value {
  Form form = Form::text;
  std::string takes = {};  // completes "it takes ..." in errors about a file

  // Sets the field. Returns what an error adds to "ranks is 0", as in "; it takes an integer from 1 to 65536". Empty:
  // the text was good. A list gets each of its elements by a call of its own.
  std::function<std::string(Target& target, std::string_view text, Spelling spelling)> set = nullptr;

  // The texts that make set() restore the field: one, or one for each element of a list. Empty: the field is unset.
  std::function<std::vector<std::string>(const Target& target, Spelling spelling)> print = nullptr;

  std::vector<std::string> words = {};  // all texts that are right, if they are few
};

// How the command line spells an option.
struct Flag {
  std::string_view name = {};     // "--seed"; empty: the command line has no such option
  std::string_view value = {};    // "N"; empty: the flag takes no value
  std::string_view example = {};  // for a value: "7"
  std::string_view summary = {};
  std::string_view bare = {};       // the value of the flag without one; empty: the flag needs one
  int place = 0;                    // among the flags of a replay line; 0: replay lines leave it out
  std::string_view component = {};  // the CMake component that the flag needs; empty: works in every program
};

template <class Target>
struct Option {
  std::string_view key = {};  // "ranks"; empty: the option is no key of a file
  Value<Target> value = {};
  std::string guide = {};          // for the guide, in Markdown: the values, after Value::words
  std::string_view fallback = {};  // for the guide: the default, if it differs from the printed one
  bool unless_default = false;     // a printed scenario leaves the key out if it has the default
  Flag flag = {};
  std::string_view variable = {};  // the environment variable that sets it for check(); empty: none
  // True if the world asks, by this option, for what only simulations can do. Null: the option holds in real runs, too,
  // or they leave its subject (schedule, time, network) to the machine.
  bool (*simulation_only)(const WorldOptions& world) = nullptr;
  std::string_view section = {};  // "world"; empty: the top level of the file
};

template <class Target>
using Options = std::vector<Option<Target>>;

// Puts the rows into a section of the file.
template <class Target>
Options<Target> in_section(std::string_view section, Options<Target> rows) {
  for (auto& row : rows) row.section = section;
  return rows;
}

// The row of a part of `Outer` as a row of `Outer`.
template <class Outer, class Inner>
Option<Outer> within(Inner Outer::* part, const Option<Inner>& row) {
  Value<Outer> value{row.value.form, row.value.takes, {}, {}, row.value.words};
  value.set = [part, set = row.value.set](Outer& outer, std::string_view text, Spelling spelling) {
    return set(outer.*part, text, spelling);
  };
  value.print = [part, print = row.value.print](const Outer& outer, Spelling spelling) {
    return print(outer.*part, spelling);
  };
  return {row.key,  std::move(value), row.guide,           row.fallback, row.unless_default,
          row.flag, row.variable,     row.simulation_only, row.section};
}

}  // namespace rehearse::sim
