// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// Makes the dumps of a job by hand. Every rank is in group "0" ("default_pg"); further groups as they are added.
class DumpMaker {
 public:
  explicit DumpMaker(int ranks, std::string version = "2.10");

  void add_group(const std::string& name, std::vector<int> ranks);

  // The rank's next entry: the next collective of the group, or for "send 0->1" its next message. `sizes`: of its one
  // input and output. Returns the entry, to be changed.
  Json& call(int rank, const std::string& name, std::vector<std::int64_t> sizes, bool completed = true,
             const std::string& group = "0");

  // A frame of the user's own, for the calls that follow; 0: none.
  void stand_at(int line) { line_ = line; }

  Json dump(int rank) const { return dumps_.at(static_cast<std::size_t>(rank)); }
  Json& dump(int rank) { return dumps_.at(static_cast<std::size_t>(rank)); }

  // Of these ranks; left out: of all.
  Report explained(std::vector<int> ranks = {}) const;

 private:
  std::vector<Json> dumps_;  // by rank
  std::map<std::string, std::string> descriptions_;
  std::map<std::pair<int, std::string>, std::pair<int, int>> sequences_;  // of collectives, of messages
  int line_ = 0;
};

// The value as LibTorch's own pickler writes it, as the recorder does.
std::string pickled(const Json& value);

// An empty folder of the running test's own, and a file in it.
std::filesystem::path dumps_folder();
void write_dump(const std::filesystem::path& file, const std::string& bytes);

// What explaining these paths is refused with, without the folder's own path.
std::string refusal(const std::vector<std::string>& paths);

}  // namespace rehearse::sim
