// SPDX-License-Identifier: BSD-3-Clause
// Contract: report.json holds no numbers that nobody measured, and a zero in it is a fact. The reader still reads files
// of earlier versions, which have zeros for such numbers. It refuses a file that lacks a number if the run must have
// measured that number.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>

#include "golden/report_samples.h"
#include "report/writers/json.h"
#include "report/writers/report_json.h"

namespace rehearse::sim {
namespace {

using Keys = std::vector<std::string>;

const Keys kNumbers{"seed", "schedule", "identity", "decisions", "switches", "operations", "end_time_ns"};

Keys missing_from(const Report& report) {
  const auto json = report_as_json(report);
  Keys missing;
  for (const auto& key : kNumbers) {
    if (!json.contains(key)) missing.push_back(key);
  }
  return missing;
}

Report crashed() {
  Report report;
  report.verdict = Verdict::crashed;
  report.ranks = 2;
  report.seed = 7;
  report.schedule = "random";
  return report;
}

Report of_dumps() {
  Report report;
  report.ranks = 2;
  report.schedule = "real";
  report.dumps.emplace().ranks = {0, 1};
  return report;
}

Report of_processes() {
  auto report = crashed();
  report.schedule = "real";
  report.operations = 3;
  report.end_time = golden::at_us(5);
  return report;
}

TEST(Measurements, OfWhatNobodyMeasured_SayNothing) {
  EXPECT_EQ(missing_from(golden::ok_report()), Keys());
  EXPECT_EQ(missing_from(crashed()), (Keys{"identity", "decisions", "switches", "operations", "end_time_ns"}));
  EXPECT_EQ(missing_from(of_dumps()), (Keys{"seed", "schedule", "identity", "decisions", "switches", "end_time_ns"}));
  EXPECT_EQ(missing_from(of_processes()), (Keys{"identity", "decisions", "switches"}));
  auto report = of_processes();
  report.operations = 0;
  EXPECT_EQ(missing_from(report), (Keys{"identity", "decisions", "switches"}));
  // A process that died before its rank began.
  report.end_time = kTimeZero;
  EXPECT_EQ(missing_from(report), (Keys{"identity", "decisions", "switches", "operations", "end_time_ns"}));
}

TEST(Measurements, ZeroThatARunMeasured_IsThere) {
  auto report = golden::ok_report();
  report.decisions = report.switches = report.operations = 0;
  report.end_time = kTimeZero;
  EXPECT_EQ(missing_from(report), Keys());
  EXPECT_EQ(report_as_json(report).at("end_time_ns").get<int>(), 0);
}

TEST(Measurements, AreReadBackAsWritten) {
  for (const auto& report : {crashed(), of_dumps(), of_processes(), golden::ok_report()}) {
    const auto json = to_json(report);
    const auto read = report_from_json(json);
    EXPECT_EQ(to_json(read), json);
    EXPECT_EQ(to_text(read), to_text(report));
  }
}

TEST(Measurements, ZerosOfEarlierVersions_AreRead) {
  for (const auto& report : {crashed(), of_dumps(), of_processes()}) {
    auto json = report_as_json(report);
    for (const char* number : {"decisions", "switches", "operations", "end_time_ns"}) {
      if (!json.contains(number)) json[number] = 0;
    }
    if (!json.contains("identity")) json["identity"] = "0x0";
    if (!json.contains("seed")) json["seed"] = "0x0";
    if (!json.contains("schedule")) json["schedule"] = "real";
    EXPECT_EQ(to_json(report_from_json(json_text(json))), to_json(report));
  }
}

TEST(Measurements, ThatAreGone_AreNamed) {
  const auto whole = report_as_json(golden::deadlock_report());
  for (const auto& key : kNumbers) {
    Json rest = Json::object();
    for (const auto& [name, value] : whole.entries()) {
      if (name != key) rest[name] = value;
    }
    // A run that did not end has no identity, so the reader accepts a report without this key.
    if (key == "identity") continue;
    try {
      report_from_json(json_text(rest));
      ADD_FAILURE() << key;
    } catch (const ReportFormatError& error) {
      EXPECT_EQ(std::string(error.what()), "is no report of rehearse: " + key + " is missing");
    }
  }
}

// Dumps have no number for a call of new_group().
TEST(Measurements, NumberOfACall_IsThereIfItIsKnown) {
  auto report = golden::mismatch_report();
  EXPECT_TRUE(report_as_json(report).at("differences").items()[0].contains("seq_id"));
  report.differences[0].sequence = 0;
  EXPECT_FALSE(report_as_json(report).at("differences").items()[0].contains("seq_id"));
  EXPECT_EQ(report_from_json(to_json(report)).differences[0].sequence, 0u);
}

}  // namespace
}  // namespace rehearse::sim
