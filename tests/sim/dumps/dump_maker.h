// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// Makes a job's dumps by hand. Every rank is in group "0" ("default_pg"), and in each added group that lists it.
class DumpMaker {
 public:
  explicit DumpMaker(int ranks, std::string version = "2.10");

  void add_group(const std::string& name, std::vector<int> ranks);
  // Adds a group that only the dumps of `made_by` have.
  void add_group(const std::string& name, std::vector<int> ranks, const std::string& description,
                 const std::vector<int>& made_by);

  // Adds the rank's next entry: the group's next collective, or the group's next message if `name` is like "send 0->1".
  // The call has one input and one output, both with these sizes. Returns the entry, which the test may change.
  Json& call(int rank, const std::string& name, std::vector<std::int64_t> sizes, bool completed = true,
             const std::string& group = "0");

  // Sets the line of the user's stack frame in later calls; 0: the calls have no such frame.
  void stand_at(int line) { line_ = line; }

  Json dump(int rank) const { return dumps_.at(static_cast<std::size_t>(rank)); }
  Json& dump(int rank) { return dumps_.at(static_cast<std::size_t>(rank)); }

  // Explains the dumps of these ranks. Empty: of all ranks.
  Report explained(std::vector<int> ranks = {}) const;

 private:
  std::vector<Json> dumps_;  // by rank
  std::map<std::string, std::string> descriptions_;
  std::map<std::pair<int, std::string>, std::pair<int, int>> sequences_;  // of collectives, of messages
  int line_ = 0;
};

// The value as LibTorch's own pickler writes it. The recorder uses this pickler, too.
std::string pickled(const Json& value);

// An empty folder for the running test. Tests write their dumps to it.
std::filesystem::path dumps_folder();
void write_dump(const std::filesystem::path& file, const std::string& bytes);

// The error for explaining these paths, without the folder's own path; empty if the dumps can be explained.
std::string refusal(const std::vector<std::string>& paths);

}  // namespace rehearse::sim
