// SPDX-License-Identifier: BSD-3-Clause
#include "page.h"

#include <fstream>
#include <map>
#include <sstream>
#include <utility>

namespace corpus {
namespace {

constexpr const char* kHead = R"(# The corpus

This page lists published reports of bugs in distributed training, and what Rehearse says about each. For most reports,
a small program makes the same mistake with real calls of c10d, stores and DDP. `tests/corpus` runs each program in two
forms. With the mistake, Rehearse must report the right verdict, rank and source line, on several schedules. Without the
mistake, Rehearse must report nothing, on 50 schedules (on 200 in the slow test). Each row describes the mistake in our
words and links the report; the numbers in the programs are ours.

*(race)* means that only some schedules find the mistake. After *OK* stands the remark that reports the mistake, because
the run itself succeeds. *must pass* means that the program is correct, and that a library or simulator failed on it;
Rehearse must report nothing. `...` stands for a line of the program, and `*` for a part that differs between schedules.
`corpus_tests` fails if this page differs from the programs and `tests/data/corpus/reports.tsv`. If
`REHEARSE_UPDATE_GOLDEN=1` is set, it writes the page instead.

)";

constexpr const char* kMissingHead = R"(
## Not here

These reports have no program yet. The last column says what a program would need.

| mistake | class | needs |
|---|---|---|
)";

using ByReport = std::map<std::string, Entry, std::less<>>;

std::string link(const PublishedReport& report) { return "[" + report.id + "](" + report.url + ") " + report.mistake; }

// The headline as a cell of the table. Source lines become `...`, because edits change them. Escapes bars and stars.
std::string told(const Entry& entry) {
  if (!entry.is_wrong()) return "*must pass*";
  std::string text(rehearse::to_string(entry.verdict));
  text += entry.on_every_schedule ? ": " : " *(race)*: ";
  for (const char letter : with_place(entry.headline, "...")) {
    if (letter == '|' || letter == '*') text += '\\';
    text += letter;
  }
  return text;
}

std::string row(const PublishedReport& report, const Entry& entry) {
  return "| " + link(report) + " | " + told(entry) + " | `" + marked_line(report.id).file + "` |\n";
}

}  // namespace

std::vector<PublishedReport> read_reports(const std::string& path) {
  std::ifstream in(path);
  std::vector<PublishedReport> reports;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    PublishedReport report;
    for (auto* field : {&report.id, &report.group, &report.url, &report.mistake, &report.missing})
      std::getline(fields, *field, '\t');
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string corpus_page(const std::vector<PublishedReport>& reports, const Entries& entries) {
  ByReport programs;
  for (const auto& entry : entries) programs.emplace(entry.report, entry);
  std::string here, missing, group;
  for (const auto& report : reports) {
    const auto entry = programs.find(report.id);
    if (entry == programs.end()) {
      missing += "| " + link(report) + " | " + report.group + " | " + report.missing + " |\n";
      continue;
    }
    if (report.group != std::exchange(group, report.group))
      here += "\n## " + group + "\n\n| mistake | what Rehearse says | program |\n|---|---|---|\n";
    here += row(report, entry->second);
  }
  const auto count =
      std::to_string(entries.size()) + " of " + std::to_string(reports.size()) + " reports have a program.\n";
  return kHead + count + here + kMissingHead + missing;
}

}  // namespace corpus
