// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/arguments.h"
#include "options/kinds.h"

namespace rehearse::cli {
namespace {

using sim::Form;
using sim::kinds::at;

constexpr int kJobsMost = 1'024;
constexpr int kRunsMost = 1'000'000;
constexpr int kFailuresMost = 1'000'000;
constexpr int kSecondsMost = 1'000'000;
constexpr double kCapMost = 1'000'000;  // MiB

// Only options of the scenario are printed.
constexpr auto kUnprinted = [](const auto&) { return std::string(); };

template <class Field>
auto word(Field field) {
  return sim::kinds::parsed(
      field, Form::text, {}, [](std::string_view text) { return std::optional<std::string>(text); }, kUnprinted);
}

auto rule_names() {
  return sim::kinds::choice<std::string>(at(&Arguments::rules),
                                         {{"default", "default"}, {"pytorch", "pytorch"}, {"ddp", "ddp"}});
}

auto seconds() {
  return sim::kinds::parsed(at(&Arguments::time_limit), Form::integer,
                            {fmt::format("an integer from 1 to {}", kSecondsMost)},
                            sim::kinds::number_from(1, kSecondsMost), kUnprinted);
}

OptionSpec switch_of(std::string_view name, bool Arguments::* field, std::string_view summary,
                     std::string_view only = {}) {
  return {.value = sim::kinds::flag(at(field)), .flag = {name, "", "", summary, "1"}, .section = only};
}

// The options of scenarios, as the command line takes them.
sim::Options<Arguments> options_of_scenarios() {
  sim::Options<Arguments> options;
  for (const auto& section : sim::scenario_sections()) {
    for (const auto& row : section.rows) {
      if (row.flag.name.empty()) continue;
      const auto give = [&row](Arguments& arguments, std::string_view text, sim::Spelling) {
        return arguments.give(row, text);
      };
      options.push_back({.value = {row.value.form, "", give, nullptr, row.value.words}, .flag = row.flag});
    }
  }
  return options;
}

sim::Options<Arguments> options_of_commands() {
  return {
      {.value = word(at(&Arguments::page)),
       .flag = {"--output", "FILE", "train.html", "where the page is written"},
       .section = "html"},
      {.value = sim::kinds::parsed(at(&Arguments::seeds), Form::text, {std::string(kSeedRangeTakes)}, parse_seed_range,
                                   kUnprinted),
       .flag = {"--seeds", "A..B", "1..100", "the seeds to run, from A to B"}},
      {.value = sim::kinds::parsed(at(&Arguments::shard), Form::text, {"a number and how many there are, as in 2/8"},
                                   parse_shard, kUnprinted),
       .flag = {"--shard", "I/N", "2/8",
                "run only this one of N equal parts of the seeds: for arrays of jobs; `merge` joins their results"}},
      {.value = sim::kinds::integer(at(&Arguments::jobs), 1, kJobsMost),
       .flag = {"--jobs", "N", "2", "worker processes; default: one per processor"}},
      {.value = sim::kinds::integer(at(&Arguments::max_failures), 1, kFailuresMost),
       .flag = {"--max-failures", "K", "10", "go on until K seeds have failed; default: 1"}},
      switch_of("--keep-going", &Arguments::keep_going, "run all seeds, however many fail"),
      {.value = seconds(),
       .flag = {"--time-limit", "SECONDS", "60",
                "stop a seed that takes longer in real time, and count it as failed; default: 600"},
       .section = "sweep"},
      {.value = seconds(),
       .flag = {"--time-limit", "SECONDS", "60", "stop a run that takes longer in real time; default: no limit"}},
      {.value = word(at(&Arguments::junit)),
       .flag = {"--junit", "FILE", "sweep.xml", "write JUnit XML: a test case for each seed"}},
      {.value = sim::kinds::integer(at(&Arguments::check_determinism), 2, kRunsMost),
       .flag = {"--check-determinism", "N", "10", "run N times and compare; without N: twice", "2"}},
      {.value = sim::kinds::number(at(&Arguments::tolerance), 0, 1),
       .flag = {"--tolerance", "T", "1e-5",
                "the largest difference between results, relative to the largest number of each; default: ranks "
                "squared times the dtype's epsilon"}},
      {.value = sim::kinds::number(at(&Arguments::bucket_cap), 0, kCapMost),
       .flag = {"--bucket-cap", "MB", "25", "DDP's bucket_cap_mb, in MiB; default: 25"}},
      {.value = sim::kinds::number(at(&Arguments::first_bucket_cap), 0, kCapMost),
       .flag = {"--first-bucket-cap", "MB", "1",
                "the cap of the bucket that is reduced first, in MiB; default: 1, or the other cap if that is less"}},
      {.value = rule_names(),
       .flag = {"--rules", "RULES", "pytorch",
                "what counts towards a bucket: default, pytorch or ddp; docs/SPLITTING.md compares them"}},
      {.value = word(at(&Arguments::model)),
       .flag = {"--model", "NAME", "encoder", "the model to read, if the archive has several"}},
      {.value = word(at(&Arguments::text_of)),
       .flag = {"--text", "PIECE", "submod_0", "print this piece's graph instead, as text"}},
      {.value = word(at(&Arguments::dot_of)),
       .flag = {"--dot", "PIECE", "submod_0", "print this piece's graph instead, for Graphviz"}},
      switch_of("--json", &Arguments::json, "buckets and pieces as JSON", "split"),
      switch_of("--json", &Arguments::json, "print only JSON on stdout; the program's own output goes to stderr"),
      switch_of("--no-color", &Arguments::no_color,
                "no colours on a terminal; NO_COLOR in the environment does the same"),
      switch_of("--quiet", &Arguments::quiet, "no banner and no progress"),
  };
}

}  // namespace

const sim::Options<Arguments>& all_options() {
  static const auto options = [] {
    auto all = options_of_commands();
    for (auto& option : options_of_scenarios()) {
      all.push_back(option);
      if (option.flag.name != "--seed") continue;
      option.flag.summary = "this seed, instead of the log's decisions";
      option.section = "replay";
      all.insert(all.begin(), option);
    }
    return all;
  }();
  return options;
}

}  // namespace rehearse::cli
