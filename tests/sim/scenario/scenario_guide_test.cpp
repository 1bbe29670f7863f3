// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "scenario/scenario_keys.h"
#include "scenario/scenario_reader.h"

// Contract: docs/GUIDE.md shows the keys as read_scenario() accepts them. With REHEARSE_UPDATE_GOLDEN=1 in the
// environment, the test rewrites the table of the page.

namespace rehearse::sim {
namespace {

std::string guide_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ScenarioGuide, TableOfKeys_IsThatOfTheReader) {
  const std::string path = REHEARSE_ROOT "/docs/GUIDE.md";
  auto guide = guide_of(path);
  const auto begin = guide.find("| key | default | values |\n");
  ASSERT_NE(begin, std::string::npos);
  const auto end = guide.find("\n\n", begin);
  ASSERT_NE(end, std::string::npos);
  const auto shown = guide.substr(begin, end + 1 - begin);
  if (std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << guide.replace(begin, shown.size(), scenario_keys_as_markdown());
    return;
  }
  EXPECT_EQ(shown, scenario_keys_as_markdown()) << "REHEARSE_UPDATE_GOLDEN=1 rewrites the table in " << path;
}

TEST(ScenarioGuide, EveryVariable_HasARowInTheTableOfVariables) {
  const auto guide = guide_of(REHEARSE_ROOT "/docs/GUIDE.md");
  for (const auto& row : world_rows()) {
    if (row.variable.empty()) continue;
    EXPECT_NE(guide.find("\n| `" + std::string(row.variable) + "="), std::string::npos) << row.variable;
  }
}

// The guide shows each default value as toml_value() writes it. The reader reads this text as the same value.
TEST(ScenarioGuide, EveryKey_IsReadBackAsItIsPrinted) {
  const Scenario unprinted;
  for (const auto& section : scenario_sections()) {
    for (const auto& row : section.rows) {
      const auto value = row.key.empty() ? "" : toml_value(row, unprinted);
      if (value.empty()) continue;
      Problems problems("guide");
      const auto table = toml::parse(std::string(row.key) + " = " + value);
      Section reader(problems, std::string(section.name), &table);
      Scenario scenario;
      reader.read(row, scenario);
      reader.finish();
      EXPECT_TRUE(problems.empty()) << row.key;
      EXPECT_EQ(toml_value(row, scenario), value) << row.key;
    }
  }
}

}  // namespace
}  // namespace rehearse::sim
