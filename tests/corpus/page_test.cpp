// SPDX-License-Identifier: BSD-3-Clause
// Contract: docs/CORPUS.md agrees with the table of programs for every published report. With REHEARSE_UPDATE_GOLDEN=1
// in the environment, the test writes the page.
#include "page.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace corpus {
namespace {

const std::string kPage = REHEARSE_ROOT "/docs/CORPUS.md";

std::vector<PublishedReport> published() { return read_reports(REHEARSE_ROOT "/tests/data/corpus/reports.tsv"); }

TEST(CorpusPage, IsThatOfTheTable) {
  const auto page = corpus_page(published(), all_entries());
  if (std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kPage, std::ios::binary) << page;
    return;
  }
  std::ifstream in(kPage, std::ios::binary);
  std::ostringstream shown;
  shown << in.rdbuf();
  EXPECT_EQ(shown.str(), page) << "REHEARSE_UPDATE_GOLDEN=1 writes " << kPage;
}

TEST(CorpusPage, EveryReport_HasAProgramOrAReason) {
  std::set<std::string> programs, ids;
  for (const auto& entry : all_entries()) EXPECT_TRUE(programs.emplace(entry.report).second) << entry.report;
  for (const auto& report : published()) {
    EXPECT_TRUE(ids.insert(report.id).second) << report.id << " is there twice";
    EXPECT_EQ(programs.count(report.id) == 1, report.missing.empty()) << report.id;
    EXPECT_TRUE(report.url.starts_with("https://github.com/")) << report.id;
    // The mistake is a sentence of our own, not a title with tags and references.
    EXPECT_FALSE(report.mistake.empty()) << report.id;
    EXPECT_LE(report.mistake.size(), 110u) << report.id;
    EXPECT_EQ(report.mistake.find_first_of("[]#:|`"), std::string::npos) << report.id;
  }
  for (const auto& id : programs) EXPECT_TRUE(ids.contains(id)) << id << " is no published report";
}

}  // namespace
}  // namespace corpus
