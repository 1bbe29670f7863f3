// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/option_values.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/sim/seed.h>

#include "cli/grammar/split_rules.h"
#include "cli/grammar/usage_error.h"

namespace rehearse::cli {
namespace {

constexpr int kRanksMost = 65'536;
constexpr int kJobsMost = 1'024;
constexpr int kRunsMost = 1'000'000;
constexpr int kFailuresMost = 1'000'000;
constexpr int kSecondsMost = 1'000'000;
constexpr double kCapMost = 1'000'000;  // MiB

std::optional<int> integer_in(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
  return value;
}

// Parses a number of at least 0; neither "inf" nor "nan".
std::optional<double> number_up_to(std::string_view text, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most)) return std::nullopt;
  return value;
}

class Values {
 public:
  Values(const std::string& name, const CommandSpec& command, const Typed& typed)
      : name_(name), command_(command), typed_(typed) {}

  bool flag(std::string_view option) const {
    const auto found = typed_.flags.find(option);
    return found != typed_.flags.end() && found->second;
  }

  std::string text(std::string_view option) const {
    const auto found = typed_.values.find(option);
    return found == typed_.values.end() ? "" : found->second;
  }

  std::optional<std::uint64_t> seed(std::string_view option) const {
    const auto typed = text(option);
    if (typed.empty()) return std::nullopt;
    const auto seed = sim::parse_seed(typed);
    if (!seed) wrong(option, typed, sim::kSeedTakes);
    return seed;
  }

  std::optional<SeedRange> seeds(std::string_view option) const {
    const auto typed = text(option);
    if (typed.empty()) return std::nullopt;
    const auto seeds = parse_seed_range(typed);
    if (!seeds) wrong(option, typed, kSeedRangeTakes);
    return seeds;
  }

  std::optional<Shard> shard(std::string_view option, const std::optional<SeedRange>& seeds) const {
    const auto typed = text(option);
    if (typed.empty()) return std::nullopt;
    const auto shard = parse_shard(typed);
    if (!shard) wrong(option, typed, "a number and how many there are, as in 2/8");
    if (seeds && seeds->count() < static_cast<std::uint64_t>(shard->count)) {
      wrong(option, typed, fmt::format("no more parts than there are seeds, {}", seeds->count()));
    }
    return shard;
  }

  std::optional<int> integer(std::string_view option, int least, int most) const {
    const auto typed = text(option);
    if (typed.empty()) return std::nullopt;
    const auto value = integer_in(typed, least, most);
    if (!value) wrong(option, typed, fmt::format("an integer from {} to {}", least, most));
    return value;
  }

  std::optional<double> number(std::string_view option, double most) const {
    const auto typed = text(option);
    if (typed.empty()) return std::nullopt;
    const auto value = number_up_to(typed, most);
    if (!value) wrong(option, typed, fmt::format("a number from 0 to {}", most));
    return value;
  }

  // `words`: the allowed words; the first is the default.
  std::string one_of(std::string_view option, const std::vector<std::string>& words) const {
    auto typed = text(option);
    if (typed.empty()) return words.front();
    if (std::find(words.begin(), words.end(), typed) == words.end()) {
      wrong(option, typed, fmt::format("one of {}", fmt::join(words, ", ")));
    }
    return typed;
  }

 private:
  [[noreturn]] void wrong(std::string_view option, std::string_view typed, std::string_view takes) const {
    refuse(name_, &command_, fmt::format("{} is {}; it takes {}", option, in_quotes(typed), takes));
  }

  const std::string& name_;
  const CommandSpec& command_;
  const Typed& typed_;
};

void take_faults(const std::string& name, const CommandSpec& command, const Typed& typed, Arguments& arguments) {
  const auto found = typed.lists.find("--fault");
  if (found == typed.lists.end()) return;
  for (const auto& text : found->second) {
    try {
      arguments.faults.push_back(parse_fault(text));
    } catch (const FaultError& error) {
      refuse(name, &command, fmt::format("--fault is {}: {}", in_quotes(text), error.what()));
    }
  }
}

// --with implies a real run.
void take_mode(const Values& values, Arguments& arguments) {
  arguments.real = values.flag("--real");
  if (values.text("--with").empty()) return;
  const auto& names = transport_names();
  const auto typed = values.one_of("--with", names);
  arguments.transport = static_cast<Transport>(std::find(names.begin(), names.end(), typed) - names.begin());
  arguments.real = true;
}

void take_schedule(const std::string& program, const CommandSpec& command, const Values& values, Arguments& arguments) {
  const auto text = values.text("--schedule");
  if (text.empty()) return;
  arguments.schedule = sim::parse_strategy(text);
  if (!arguments.schedule)
    refuse(program, &command, fmt::format("--schedule takes {}, not \"{}\"", sim::kStrategyTakes, text));
}

void take_checks(const Values& values, Arguments& arguments) {
  if (values.text("--checks").empty()) return;
  const auto& names = check_level_names();
  const auto typed = values.one_of("--checks", names);
  arguments.checks = static_cast<CheckLevel>(std::find(names.begin(), names.end(), typed) - names.begin());
}

void take_split_values(const std::string& name, const CommandSpec& command, const Values& values,
                       Arguments& arguments) {
  arguments.bucket_cap = values.number("--bucket-cap", kCapMost);
  arguments.first_bucket_cap = values.number("--first-bucket-cap", kCapMost);
  arguments.rules = values.one_of("--rules", rule_names());
  arguments.model = values.text("--model");
  arguments.text_of = values.text("--text");
  arguments.dot_of = values.text("--dot");
  const int forms = static_cast<int>(!arguments.text_of.empty()) + static_cast<int>(!arguments.dot_of.empty()) +
                    static_cast<int>(values.flag("--json"));
  if (forms > 1) {
    refuse(name, &command, "--text, --dot and --json each print something else: give one of them");
  }
}

}  // namespace

void take_values(const std::string& name, const CommandSpec& command, const Typed& typed, Arguments& arguments) {
  const Values values(name, command, typed);
  arguments.operand = typed.operand;
  arguments.operands = typed.operands;
  arguments.seed = values.seed("--seed");
  arguments.seeds = values.seeds("--seeds");
  arguments.shard = values.shard("--shard", arguments.seeds);
  arguments.swarm = values.flag("--swarm");
  arguments.jobs = values.integer("--jobs", 1, kJobsMost);
  arguments.max_failures = values.integer("--max-failures", 1, kFailuresMost);
  arguments.keep_going = values.flag("--keep-going");
  if (arguments.keep_going && arguments.max_failures) {
    refuse(name, &command, "--keep-going runs all seeds, --max-failures stops before: give one of them");
  }
  if (find_option(command, "--seeds") != nullptr && !arguments.seeds) {
    refuse(name, &command, fmt::format("which seeds? --seeds takes {}", kSeedRangeTakes));
  }
  if (const auto seconds = values.integer("--time-limit", 1, kSecondsMost)) {
    arguments.time_limit = std::chrono::seconds(*seconds);
  } else if (arguments.seeds) {
    arguments.time_limit = kSeedTimeLimit;
  }
  take_mode(values, arguments);
  take_faults(name, command, typed, arguments);
  take_schedule(name, command, values, arguments);
  take_checks(values, arguments);
  arguments.check_buffers = values.flag("--check-buffers");
  arguments.check_sharing = values.flag("--check-sharing");
  arguments.tolerance = values.number("--tolerance", 1);
  take_split_values(name, command, values, arguments);
  arguments.junit = values.text("--junit");
  arguments.ranks = values.integer("--ranks", 1, kRanksMost);
  arguments.output = values.text("--output");
  arguments.check_determinism = values.integer("--check-determinism", 2, kRunsMost).value_or(0);
  arguments.json = values.flag("--json");
  arguments.no_color = values.flag("--no-color");
  arguments.quiet = values.flag("--quiet");
}

}  // namespace rehearse::cli
