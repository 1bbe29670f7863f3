// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/shard_file.h"

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <rehearse/job/verdict.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/input_file.h>

#include "cli/grammar/usage_error.h"
#include "record/output_file.h"
#include "report/writers/json.h"

namespace rehearse::cli {
namespace {

using sim::Json;
using std::filesystem::path;

constexpr int kShardFormat = 3;
constexpr std::size_t kShardBytesMost = std::size_t{4} << 30;

Json json_of_seed(std::uint64_t seed, const SeedResult& result) {
  Json json = {
      {"seed", seed}, {"identity", result.identity}, {"seconds", result.seconds}, {"strategy", result.strategy}};
  if (result.failure) json["report"] = sim::parse_json(sim::to_json(*result.failure));
  if (!result.files.empty()) json["files"] = result.files;
  if (!result.remarks.empty()) json["remarks"] = result.remarks;
  return json;
}

struct ShardPart {
  Shard shard;
  std::string whole;     // the seeds of all shards
  std::string scenario;  // the part that all shards share
  SweepOutcome outcome;
};

SeedRange seeds_in(const std::string& text) {
  const auto range = parse_seed_range(text);
  if (!range) throw UsageError(fmt::format("\"{}\" is not a range of seeds", text));
  return *range;
}

ShardPart part_of_json(const Json& json) {
  if (json.at("rehearse_shard").get<int>() != kShardFormat) throw UsageError("has another format version");
  ShardPart part;
  const auto shard = parse_shard(json.at("shard").get<std::string>());
  if (!shard) throw UsageError("does not say which shard it is");
  part.shard = *shard;
  part.whole = json.at("seeds").get<std::string>();
  part.outcome.program = json.at("program").get<std::string>();
  part.scenario = json.at("scenario").get<std::string>();
  part.outcome.asked = seeds_in(part.whole);
  part.outcome.expect = verdict_from_string(json.at("expect").get<std::string>()).value_or(Verdict::ok);
  part.outcome.interrupted = json.at("interrupted").get<bool>();
  part.outcome.stopped = json.at("stopped").get<bool>();
  for (const auto& each : json.at("results").items()) {
    SeedResult result{each.at("identity").get<std::uint64_t>(), each.at("seconds").get<double>(), nullptr};
    result.strategy = each.at("strategy").get<std::string>();
    if (each.contains("files")) result.files = each.at("files").get<std::vector<std::string>>();
    if (each.contains("remarks")) result.remarks = each.at("remarks").get<std::vector<std::string>>();
    if (each.contains("report")) {
      result.failure = std::make_unique<Report>(sim::report_from_json(sim::json_text(each.at("report"))));
    }
    part.outcome.results.emplace(each.at("seed").get<std::uint64_t>(), std::move(result));
  }
  return part;
}

ShardPart read_shard(const path& file) {
  const auto text = sim::read_input(file, "shard of a sweep", [](std::string_view) { return kShardBytesMost; });
  try {
    return part_of_json(sim::parse_json(text));
  } catch (const sim::JsonError&) {
    throw UsageError(fmt::format("{}: is no shard of a sweep, or is cut off", file.string()));
  } catch (const sim::ReportFormatError& error) {
    throw UsageError(fmt::format("{}: {}", file.string(), error.what()));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

// The part of the scenario that all shards of a sweep share. Paths may differ between the machines on which shards run.
std::string text_of_all_seeds(sim::Scenario scenario) {
  scenario.world.seed = 0;
  scenario.output = {};
  scenario.executable.clear();
  std::istringstream all(sim::to_toml(scenario));
  std::string line, text;
  bool is_parameter = false;
  while (std::getline(all, line)) {
    if (line.starts_with('[')) is_parameter = line == "[parameters]";
    const bool is_path = is_parameter && line.ends_with('"') && line.find('/') != std::string::npos;
    if (!is_path) text += line + "\n";
  }
  return text;
}

// Finds the first line in which two scenarios differ. Returns this line of each scenario.
std::pair<std::string, std::string> first_difference(const std::string& one, const std::string& other) {
  std::istringstream left(one), right(other);
  std::string of_left, of_right;
  for (;;) {
    const bool more_left = static_cast<bool>(std::getline(left, of_left));
    const bool more_right = static_cast<bool>(std::getline(right, of_right));
    if (more_left && more_right && of_left == of_right) continue;
    return {more_left ? of_left : "its end", more_right ? of_right : "its end"};
  }
}

void require_same_sweep(const path& file, const ShardPart& part, const path& first_file, const ShardPart& first) {
  const auto fail = [&](std::string_view what, const auto& value, const auto& expected) {
    throw UsageError(
        fmt::format("{}: is of another sweep than {}: {} is {}, not {}; let each sweep have a folder of "
                    "its own",
                    file.string(), first_file.string(), what, value, expected));
  };
  if (part.outcome.program != first.outcome.program) fail("the program", part.outcome.program, first.outcome.program);
  if (part.whole != first.whole) fail("the range of seeds", part.whole, first.whole);
  if (part.shard.count != first.shard.count) fail("the number of shards", part.shard.count, first.shard.count);
  if (part.outcome.expect != first.outcome.expect) {
    fail("what is expected", to_string(part.outcome.expect), to_string(first.outcome.expect));
  }
  if (part.scenario != first.scenario) {
    const auto [own, its] = first_difference(part.scenario, first.scenario);
    fail("a line of the scenario", own, its);
  }
}

bool is_shard_name(const std::string& name) { return name.starts_with("shard-") && name.ends_with(".json"); }

}  // namespace

path shard_file(const path& folder, const Shard& shard) {
  return folder / fmt::format("shard-{}-of-{}.json", shard.index, shard.count);
}

void write_shard(const sim::Scenario& scenario, const Shard& shard, const SeedRange& whole,
                 const SweepOutcome& outcome) {
  Json json = {
      {"rehearse_shard", kShardFormat},     {"program", outcome.program}, {"scenario", text_of_all_seeds(scenario)},
      {"seeds", to_string(whole)},          {"shard", to_string(shard)},  {"expect", to_string(outcome.expect)},
      {"interrupted", outcome.interrupted}, {"stopped", outcome.stopped}};
  auto& results = json["results"] = Json::array();
  for (const auto& [seed, result] : outcome.results) results.push_back(json_of_seed(seed, result));
  const auto text = sim::json_text(std::move(json), 1);
  sim::write_file(shard_file(scenario.output.directory, shard), [&](std::ostream& out) { out << text << "\n"; });
}

std::vector<path> shard_files_in(const path& folder) {
  std::vector<path> files;
  std::error_code ignored;
  const auto look_in = [&](const path& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
      if (is_shard_name(entry.path().filename().string())) files.push_back(entry.path());
    }
  };
  look_in(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored)) look_in(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

JoinedShards join_shards(const std::vector<path>& files) {
  JoinedShards joined;
  std::vector<ShardPart> parts;
  std::set<int> seen;
  for (const auto& file : files) {
    parts.push_back(read_shard(file));
    require_same_sweep(file, parts.back(), files.front(), parts.front());
    if (seen.insert(parts.back().shard.index).second) continue;
    throw UsageError(fmt::format("{}: shard {} is there twice", file.string(), to_string(parts.back().shard)));
  }
  auto& outcome = joined.outcome;
  outcome.program = parts.front().outcome.program;
  outcome.expect = parts.front().outcome.expect;
  outcome.asked = parts.front().outcome.asked;
  joined.count = parts.front().shard.count;
  for (auto& part : parts) {
    outcome.interrupted |= part.outcome.interrupted;
    outcome.stopped |= part.outcome.stopped;
    outcome.results.merge(part.outcome.results);
  }
  for (int index = 1; index <= joined.count; ++index) {
    if (!seen.contains(index)) joined.missing.push_back(index);
  }
  outcome.interrupted |= !joined.missing.empty();
  return joined;
}

}  // namespace rehearse::cli
