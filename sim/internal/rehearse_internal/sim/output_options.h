// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace rehearse::sim {

// The files that a run writes besides its decision log, which it always writes. The keys under [output] name the files:
// "report", "json", "html", "trace", "flight_recorder", "calls", "results" (sim/run/run_files.cpp holds the table). A
// plain value.
struct OutputOptions {
  std::filesystem::path directory;
  // The scenario's wish for each file. For files that it does not name, the table says whether to write them.
  std::map<std::string, bool, std::less<>> files;
  bool all_events = true;  // false: keep only the last operations of each rank

  bool wants(std::string_view file) const;
  bool names(std::string_view file) const { return files.contains(file); }

  static OutputOptions only(std::string_view file);

  // True if a wanted file is made from every operation of a run. leave_events_out() drops those files.
  bool needs_all_events() const;
  // Also wants the files that serve for comparison with another mode, unless the scenario names them.
  void want_what_modes_share();
  void leave_events_out();
};

}  // namespace rehearse::sim
