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
  std::string missing;  // why there is no program for it; empty: there is one
};

std::vector<PublishedReport> read_reports(const std::string& path);

// All of docs/CORPUS.md.
std::string corpus_page(const std::vector<PublishedReport>& reports, const Entries& entries);

}  // namespace corpus
