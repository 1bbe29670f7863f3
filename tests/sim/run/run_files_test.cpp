// SPDX-License-Identifier: BSD-3-Clause
#include "run/run_files.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/output_file.h"

// Contract: one table lists the files of a run. The files that a run writes, the files that reports name, and the files
// that are removed agree with this table.

namespace rehearse::sim {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class RunFiles : public ::testing::Test {
 protected:
  RunFiles() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "run_files";
  const comm::EventLog events_{comm::EventLogOptions{.ranks = 2, .keep_all = true}};
  const Report report_{};
};

TEST_F(RunFiles, OfNoWishes_AreAllOfThem) {
  const OutputOptions output;
  EXPECT_TRUE(output.needs_all_events());
  EXPECT_THAT(files_of("out", output), ElementsAre("out/run.rlog", "out/report.txt", "out/report.json",
                                                   "out/report.html", "out/trace.json", "out/flight_recorder.json"));
  EXPECT_THAT(all_files_in("out"),
              ElementsAre("out/run.rlog", "out/report.txt", "out/report.json", "out/report.html", "out/trace.json",
                          "out/flight_recorder.json", "out/calls.json", "out/results.json"));
  write_report_files(folder_, output, {report_, &events_});
  EXPECT_THAT(names_in(folder_),
              ElementsAre("flight_recorder.json", "report.html", "report.json", "report.txt", "trace.json"));
}

TEST_F(RunFiles, WriterThatThrows_LeavesTheOldFileAndNoPart) {
  const auto file = folder_ / "report.txt";
  write_file(file, [](std::ostream& out) { out << "old"; });
  EXPECT_THROW(write_file(file, [](std::ostream&) { throw std::runtime_error("no text"); }), std::runtime_error);
  EXPECT_THAT(names_in(folder_), ElementsAre("report.txt"));
}

TEST_F(RunFiles, NameThatIsTakenMeanwhile_LeavesNoPart) {
  const auto file = folder_ / "report.txt";
  EXPECT_THROW(write_file(file, [&](std::ostream&) { std::filesystem::create_directory(file); }), OutputError);
  EXPECT_THAT(names_in(folder_), ElementsAre("report.txt"));
}

TEST_F(RunFiles, ToBeCompared_HaveWhatModesShare) {
  OutputOptions output = OutputOptions::only("json");
  output.files.erase("calls");
  output.files.erase("results");
  EXPECT_FALSE(output.wants("calls"));
  EXPECT_FALSE(output.wants("results"));
  output.want_what_modes_share();
  EXPECT_TRUE(output.needs_all_events());
  const std::vector<RankResult> results;
  write_report_files(folder_, output, {report_, &events_, &results});
  EXPECT_THAT(names_in(folder_), ElementsAre("calls.json", "report.json", "results.json"));
  output.files["results"] = false;
  output.want_what_modes_share();
  EXPECT_FALSE(output.wants("results"));
}

TEST_F(RunFiles, WithoutEvents_AreTheReportsOwn) {
  OutputOptions output;
  output.leave_events_out();
  EXPECT_FALSE(output.needs_all_events());
  EXPECT_THAT(files_of("out", output),
              ElementsAre("out/run.rlog", "out/report.txt", "out/report.json", "out/report.html"));
  write_report_files(folder_, OutputOptions(), {report_});  // without events
  EXPECT_THAT(names_in(folder_), ElementsAre("report.html", "report.json", "report.txt"));
}

TEST_F(RunFiles, OnlyOne_IsWrittenAlone) {
  const auto output = OutputOptions::only("json");
  EXPECT_THAT(files_of("out", output), ElementsAre("out/run.rlog", "out/report.json"));
  write_report_files(folder_, output, {report_, &events_});
  EXPECT_THAT(names_in(folder_), ElementsAre("report.json"));
}

TEST_F(RunFiles, LargeRun_LeavesOutWhatWasNotNamed) {
  OutputOptions output;
  EXPECT_EQ(leave_out_large_files(output, 50'000), "");
  EXPECT_TRUE(output.needs_all_events());
  output.files = {{"trace", true}};
  EXPECT_EQ(leave_out_large_files(output, 50'001),
            "report.html and flight_recorder.json left out, of a run of more than 50000 operations; html = true and "
            "flight_recorder = true under [output] would have written them");
  EXPECT_TRUE(output.wants("trace"));
  EXPECT_FALSE(output.wants("flight_recorder"));
}

TEST_F(RunFiles, FolderThatIsNotThere_IsAnOutputErrorWithThePath) {
  try {
    write_report_files(folder_ / "gone", OutputOptions(), {report_});
    FAIL() << "nothing was thrown";
  } catch (const OutputError& error) {
    EXPECT_EQ(error.what(), (folder_ / "gone/report.txt").string() + ": cannot be written: No such file or directory");
  }
}

}  // namespace
}  // namespace rehearse::sim
