// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace rehearse::sim {

// What a run writes besides its decision log, which it always writes. Files are called by their keys under [output]:
// "report", "json", "html", "trace", "flight_recorder", "calls", "results" (the table is sim/run/run_files.cpp). A
// plain value.
struct OutputOptions {
  std::filesystem::path directory;
  // What the scenario says of each file; of one that it does not name the table says whether it is written.
  std::map<std::string, bool, std::less<>> files;
  bool all_events = true;  // false: there are the last operations of each rank alone

  bool wants(std::string_view file) const;
  bool names(std::string_view file) const { return files.contains(file); }

  static OutputOptions only(std::string_view file);

  // Whether a file is wanted that is made of every operation of a run; and how to do without them.
  bool needs_all_events() const;
  // Those that are there to be compared with another mode's, unless they are named already.
  void want_what_modes_share();
  void leave_events_out();
};

}  // namespace rehearse::sim
