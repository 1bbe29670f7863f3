// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/report.h>

// A report as text for people and as JSON for programs. The functions are pure: equal reports give equal bytes.
namespace rehearse::sim {

struct TextOptions {
  // Lines are wrapped at this many bytes. A longer single word (a path) and the replay line stay whole.
  std::size_t width = 120;
  // Print the verdict in color (ANSI codes). The caller must know whether the output is a terminal.
  bool color = false;
};

// True for the report of a real run, whose schedule the machine decided. Such a report has neither an identity nor
// decisions.
inline bool is_real(const Report& report) { return report.schedule == "real"; }

// The report for people, most important parts first: the verdict and its headline; the culprits; how each rank ended
// (ranks that ended alike share a line); calls that should have agreed, and their differences; who waits for whom;
// findings and faults; calls from different places; source lines that some ranks executed more often than others to
// make calls; stacks of dumps; remarks; the last events; what was checked; what ran; the files written; the command
// that repeats the run; a hint. Ends with a line end.
//
// Long parts are cut, with a count of what is left out (the JSON report has everything). At most 16 rank lines remain,
// those of the rarest states. At least 3 events remain, and as many as keep the report near 25 lines.
std::string to_text(const Report& report, const TextOptions& options = {});

// The report as indented JSON, keys in a fixed order, with a line end. Times are nanoseconds of virtual time or, if
// "mode" is "real", of time since the run began. Seed and identity are texts ("0x7"), because many readers keep
// integers as doubles. Bytes that are not UTF-8 are replaced. "rehearse_report" is the number of the format; another
// number means other keys.
std::string to_json(const Report& report);

// A text is not a report, or has another format. what() continues a sentence that begins with the text's name: it names
// the part that is missing or has another type.
class ReportFormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads back what to_json() wrote. Ignores unknown keys. Throws ReportFormatError.
Report report_from_json(std::string_view text);

}  // namespace rehearse::sim
