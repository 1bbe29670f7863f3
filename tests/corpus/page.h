// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "entry.h"

namespace corpus {

// A line of tests/data/corpus/reports.tsv.
struct PublishedReport {
  std::string id;     // "B010"
  std::string group;  // its class: "rank-branch"
  std::string url;
  std::string mistake;  // in our words
  std::string missing;  // why it has no program; empty: it has one
};

std::vector<PublishedReport> read_reports(const std::string& path);

// The whole text of docs/CORPUS.md.
std::string corpus_page(const std::vector<PublishedReport>& reports, const Entries& entries);

}  // namespace corpus
