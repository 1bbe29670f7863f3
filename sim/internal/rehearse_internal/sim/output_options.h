// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace rehearse::sim {

// The files that a run writes besides its run log, which no key turns off. The keys under [output] name the files, such
// as "report"; sim/run/run_files.cpp holds the table. A plain value.
struct OutputOptions {
  std::filesystem::path directory;
  // Says for each file that the scenario names whether to write it. For other files, the table decides.
  std::map<std::string, bool, std::less<>> files;
  bool all_events = true;  // false: keep only the last operations of each rank

  bool wants(std::string_view file) const;
  bool names(std::string_view file) const { return files.contains(file); }

  static OutputOptions only(std::string_view file);

  // True if all_events is true and a wanted file shows the operations of the run.
  bool needs_all_events() const;
  // Turns on the files that serve to compare modes, unless the scenario says whether to write them.
  void want_what_modes_share();
  // Drops the files that exist only with all operations. The page stays, and shows the last operations of each rank.
  void leave_events_out();
};

}  // namespace rehearse::sim
