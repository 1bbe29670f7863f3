// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <rehearse_internal/sim/scenario.h>

#include "cli/grammar/seed_range.h"
#include "cli/sweep/summary.h"

// The file that a shard of a sweep leaves in the sweep's folder, for `merge`.
namespace rehearse::cli {

// For example `folder`/shard-2-of-8.json.
std::filesystem::path shard_file(const std::filesystem::path& folder, const Shard& shard);

// Writes the file into the scenario's folder. `whole`: the seeds of all shards. Throws OutputError.
void write_shard(const sim::Scenario& scenario, const Shard& shard, const SeedRange& whole,
                 const SweepOutcome& outcome);

// The shard files in `folder` and directly in its subfolders, sorted by path; empty: there are none.
std::vector<std::filesystem::path> shard_files_in(const std::filesystem::path& folder);

struct JoinedShards {
  SweepOutcome outcome;      // outcome.interrupted is also true if shards are missing
  std::vector<int> missing;  // numbers of missing shards, from 1
  int count = 0;
};

// Joins shards to their sweep. Throws sim::InputError if a file cannot be read. Throws UsageError if a file is no
// shard, if it holds the same shard as another file, or if two files belong to different sweeps. All shards of a sweep
// have the same program, range of seeds, number of shards, expected verdict and scenario. Two scenarios count as the
// same if they differ only in the seed, the executable, the outputs, and parameters that are paths.
JoinedShards join_shards(const std::vector<std::filesystem::path>& files);

}  // namespace rehearse::cli
