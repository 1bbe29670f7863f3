// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>
#include <nlohmann/json.hpp>

// Contract: a report whose numbers make no sense is either refused or read; it never crashes the reader.
namespace rehearse::sim {
namespace {

using nlohmann::json;

std::vector<std::filesystem::path> reports() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(GOLDEN)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  return files;
}

json parsed(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return json::parse(in);
}

void for_each_number(json& value, const std::function<void(json& number)>& visit) {
  if (value.is_number()) return visit(value);
  if (!value.is_structured()) return;
  for (auto& each : value) for_each_number(each, visit);
}

TEST(ReportNumbers, OutOfRange_AreRefusedOrRead) {
  ASSERT_GE(reports().size(), 8u);
  const json numbers[] = {-1,
                          std::int64_t{1} << 31,
                          std::numeric_limits<std::int64_t>::max(),
                          std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::uint64_t>::max(),
                          1e300,
                          -0.5};
  for (const auto& file : reports()) {
    SCOPED_TRACE(file);
    auto report = parsed(file);
    for_each_number(report, [&](json& number) {
      const auto before = number;
      for (const auto& other : numbers) {
        number = other;
        try {
          const auto read = report_from_json(report.dump());
          to_json(read);
          to_text(read);
        } catch (const ReportFormatError&) {
        }
      }
      number = before;
    });
    EXPECT_NO_THROW(report_from_json(report.dump()));
  }
}

TEST(ReportNumbers, RanksAndTimes_AreNamed) {
  const auto told = [](const char* key, const json& value) -> std::string {
    auto report = parsed(std::filesystem::path(GOLDEN) / "report_deadlock.json");
    (key == std::string("rank") ? report["rank_lines"][1] : report)[key] = value;
    try {
      report_from_json(report.dump());
      return "nothing";
    } catch (const ReportFormatError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(told("ranks", -1), "is no report of rehearse: ranks is -1, and not a number from 1 to 16777216");
  EXPECT_EQ(told("ranks", 0), "is no report of rehearse: ranks is 0, and not a number from 1 to 16777216");
  EXPECT_EQ(told("rank", -3),
            "is no report of rehearse: rank_lines[1].rank is -3; right would be a rank from 0 to 7, as there are 8");
  EXPECT_EQ(told("rank", 99),
            "is no report of rehearse: rank_lines[1].rank is 99; right would be a rank from 0 to 7, as there are 8");
  EXPECT_EQ(told("ranks", 3),
            "is no report of rehearse: rank_lines[3].rank is 3; right would be a rank from 0 to 2, as there are 3");
  EXPECT_EQ(told("end_time_ns", -1),
            "is no report of rehearse: end_time_ns is -1, and not a number from 0 to 9223372036854775807");
}

}  // namespace
}  // namespace rehearse::sim
