// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/report.h>

// A report as text for people and as JSON for programs. Pure functions: equal reports give equal bytes.
// Nothing blocks; no clock is read.
namespace rehearse::sim {

struct TextOptions {
  // Lines are wrapped at this many bytes; a single longer word (a path) and the replay line are left whole.
  std::size_t width = 120;
  // The verdict in color (ANSI codes). Whether the output is a terminal is for the caller to know.
  bool color = false;
};

// Is it of a run that the machine decided, in real time? Such a report has no identity, and no decisions.
inline bool is_real(const Report& report) { return report.schedule == "real"; }

// The report for people, a reader may stop after any part: the verdict and its headline; a line for each
// rank, ranks that say the same on one line; calls that should have been the same, and what differs; who
// waits for whom; calls from different places; the last events; what was checked; what ran; the files
// written; the command that runs it again. Ends with a line end.
//
// Long parts are cut with a count of what is left out (the JSON report has all): at most 16 rank lines, the
// rarest states first, and as many events as keep the report of 8 ranks near 25 lines.
std::string to_text(const Report& report, const TextOptions& options = {});

// The report as JSON, indented, keys in a fixed order, with a line end. Times are nanoseconds of virtual
// time, or, where "mode" is "real", of the time since the run began; seed and identity are texts ("0x7"), because many
// readers keep integers as doubles. Bytes that are not UTF-8 are replaced. "rehearse_report" is the format's number:
// another one has other keys.
std::string to_json(const Report& report);

// A text is not a report, or one of another format; what() goes on a sentence that begins with the text's
// name, and names the part that is missing or of another type.
class ReportFormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The report that to_json() made `text` of. Unknown keys are ignored. Throws ReportFormatError.
Report report_from_json(std::string_view text);

}  // namespace rehearse::sim
