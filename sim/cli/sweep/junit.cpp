// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/junit.h"

#include <cerrno>
#include <ostream>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>

#include "cli/death/pipe.h"
#include "cli/grammar/usage_error.h"
#include "cli/terminal/console.h"
#include "record/output_file.h"
#include "report/writers/json.h"
#include "report/writers/text_lines.h"

namespace rehearse::cli {
namespace {

// Replaces bytes that are not UTF-8 by U+FFFD, as printing JSON does.
std::string utf8(std::string_view text) { return sim::parse_json(sim::json_text(text)).get<std::string>(); }

// Escapes a text for XML text and attributes. XML 1.0 allows no control characters except tab and line ends.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : utf8(text)) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
      result += "\xEF\xBF\xBD";
    } else {
      result += c;
    }
  }
  return result;
}

struct Counts {
  std::size_t failures = 0, errors = 0;
  double seconds = 0;
};

Counts counts_of(const SeedResults& results) {
  Counts counts;
  for (const auto& [seed, result] : results) {
    counts.seconds += result.seconds;
    if (!result.failure) continue;
    ++(result.failure->verdict == Verdict::crashed ? counts.errors : counts.failures);
  }
  return counts;
}

std::string failure_element(const Report& report) {
  const auto* const kind = report.verdict == Verdict::crashed ? "error" : "failure";
  return fmt::format("      <{} type=\"{}\" message=\"{}\">{}</{}>\n", kind, to_string(report.verdict),
                     escaped(sim::visible(report.headline)), escaped(sim::to_text(report)), kind);
}

}  // namespace

void write_junit(std::ostream& out, const std::string& program, const SeedResults& results) {
  const auto counts = counts_of(results);
  const auto name = escaped(program);
  const auto totals = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\"", results.size(),
                                  counts.failures, counts.errors, counts.seconds);
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out << fmt::format("<testsuites {}>\n  <testsuite name=\"{}\" {}>\n", totals, name, totals);
  for (const auto& [seed, result] : results) {
    const auto head =
        fmt::format("    <testcase classname=\"{}\" name=\"seed {}\" time=\"{:.3f}\"", name, seed, result.seconds);
    if (result.failure) {
      out << head << ">\n" << failure_element(*result.failure) << "    </testcase>\n";
    } else {
      out << head << "/>\n";
    }
  }
  out << "  </testsuite>\n</testsuites>\n";
}

void require_junit(const std::string& file) {
  if (file.empty()) return;
  const Fd tried(open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (tried.get() < 0 && errno == ENXIO) {
    throw UsageError(
        fmt::format("{}: cannot be written: nobody reads from this pipe; --junit=FILE names another", file));
  }
  try {
    sim::write_file(file, [](std::ostream&) {});
  } catch (const OutputError& error) {
    throw UsageError(fmt::format("{}; --junit=FILE names another", error.what()));
  }
}

bool leave_junit(const std::string& file, const std::string& program, const SeedResults& results) {
  if (file.empty()) return true;
  return Console::leave([&] { sim::write_file(file, [&](std::ostream& out) { write_junit(out, program, results); }); });
}

}  // namespace rehearse::cli
