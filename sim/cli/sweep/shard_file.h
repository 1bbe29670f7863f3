// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <rehearse_internal/sim/scenario.h>

#include "cli/grammar/seed_range.h"
#include "cli/sweep/summary.h"

// What a shard of a sweep leaves for `merge`: a file in the sweep's folder.
namespace rehearse::cli {

// `folder`/shard-2-of-8.json
std::filesystem::path shard_file(const std::filesystem::path& folder, const Shard& shard);

// Into the scenario's folder. `whole`: the seeds of all shards. Throws OutputError.
void write_shard(const sim::Scenario& scenario, const Shard& shard, const SeedRange& whole,
                 const SweepOutcome& outcome);

// Those in `folder` and in the folders in it, in order of name; empty: there are none.
std::vector<std::filesystem::path> shard_files_in(const std::filesystem::path& folder);

struct JoinedShards {
  SweepOutcome outcome;      // interrupted where shards are missing
  std::vector<int> missing;  // numbers of shards, from 1
  int count = 0;
};

// The sweep of which these are shards. Throws UsageError where one is no such file, or of another sweep (other seeds,
// or a scenario that says something else, but for seed, outputs and paths), or there twice.
JoinedShards join_shards(const std::vector<std::filesystem::path>& files);

}  // namespace rehearse::cli
