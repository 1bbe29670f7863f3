// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>

#include "cli/output_folder.h"
#include "cli/process.h"

// Contract: with --json, stdout is one JSON document whatever the program prints. Only terminals get colors, and only
// if no setting forbids them. A run that cannot begin leaves the files of the earlier one. The guide's table has all
// exit codes that --help lists.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Output : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"prints", "skip", "sum"}) {
      write_file(folder_ / (std::string(program) + ".toml"),
                 std::string("program = \"") + program + "\"\n[world]\nranks = 2\n");
    }
  }

  Finished job(const std::vector<std::string>& arguments) const { return run_process(CLI_JOB, arguments, folder_); }
  Finished on_terminal(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment = {}) const {
    return run_on_terminal(CLI_JOB, arguments, folder_, environment);
  }

  const std::filesystem::path folder_ = fresh_folder();
};

class Json : public Output {};
class Color : public Output {};

TEST_F(Json, WhatTheProgramPrints_GoesToStderr) {
  const auto finished = job({"run", "prints.toml", "--json", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(sim::report_from_json(finished.out).ranks, 2);
  EXPECT_THAT(finished.err, HasSubstr("rank 0 is here\n"));
  EXPECT_THAT(finished.err, HasSubstr("rank 1 is here\n"));
}

TEST_F(Json, Replay_HasStdoutForItself) {
  ASSERT_EQ(job({"run", "prints.toml", "--quiet"}).exit_code, 0);
  const auto finished = job({"replay", "rehearse-out/prints/run.rlog", "--json"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(sim::report_from_json(finished.out).verdict, Verdict::ok);
}

TEST_F(Json, ReportFile_IsExplained) {
  const auto first = job({"run", "skip.toml", "--quiet"});
  const auto finished = job({"explain", "rehearse-out/skip/report.json"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out, job({"explain", "rehearse-out/skip/run.rlog"}).out);
  EXPECT_EQ(finished.out.substr(0, finished.out.find("\nfiles:")), first.out.substr(0, first.out.find("\nfiles:")));
}

TEST_F(Json, FileThatIsNoReport_IsRefused) {
  write_file(folder_ / "other.json", "{\"a\": 1}\n");
  const auto finished = job({"explain", "other.json"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("other.json: is no report of rehearse: rehearse_report is missing"));
}

TEST_F(Color, OnATerminal_TheVerdictIsColoured) {
  const auto finished = on_terminal({"run", "sum.toml"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("\x1b[1;32mOK\x1b[0m: 2 ranks returned"));
  EXPECT_THAT(on_terminal({"run", "skip.toml"}).out, HasSubstr("\x1b[1;31mDEADLOCK\x1b[0m: "));
  EXPECT_THAT(on_terminal({"explain", "rehearse-out/skip/run.rlog"}).out, HasSubstr("\x1b[1;31mDEADLOCK\x1b[0m: "));
}

TEST_F(Color, WhereItIsTurnedOff_ThereIsNone) {
  EXPECT_THAT(on_terminal({"run", "sum.toml", "--no-color", "--quiet"}).out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(on_terminal({"run", "sum.toml"}, {"TERM=dumb"}).out, Not(HasSubstr("\x1b")));
  const auto no_color = on_terminal({"run", "sum.toml", "--quiet"}, {"NO_COLOR=1"});
  EXPECT_THAT(no_color.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(no_color.out, HasSubstr("OK: 2 ranks returned"));
  // By the NO_COLOR convention, an empty value does not count.
  EXPECT_THAT(on_terminal({"run", "sum.toml", "--quiet"}, {"NO_COLOR="}).out, HasSubstr("\x1b[1;32mOK"));
  EXPECT_THAT(job({"run", "sum.toml"}).out, Not(HasSubstr("\x1b")));
}

TEST_F(Color, Progress_IsRedrawnInPlace) {
  const auto finished = on_terminal({"run", "sum.toml"});
  EXPECT_THAT(finished.out, HasSubstr("\r\x1b[K4/4 100%"));
  EXPECT_THAT(finished.out, Not(HasSubstr("hello\r\n")));
}

TEST_F(Output, OfARunThatCannotBegin_IsThatOfTheEarlierRun) {
  write_file(folder_ / "report.json", "earlier");
  std::filesystem::create_directories(folder_ / "rank-1");
  write_file(folder_ / "rank-1" / "report.json", "of rank 1");
  {
    cli::OutputFolder output(folder_);
    output.set_aside_run_in(folder_ / "rank-1");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "report.json"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "rank-1"));
    write_file(output.log(), "begun");
  }
  EXPECT_EQ(read_file(folder_ / "report.json"), "earlier");
  EXPECT_EQ(read_file(folder_ / "rank-1" / "report.json"), "of rank 1");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run.rlog"));
  {
    cli::OutputFolder output(folder_);
    write_file(output.log(), "begun");
    output.keep();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "report.json"));
  EXPECT_EQ(read_file(folder_ / "run.rlog"), "begun");
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".earlier"));
}

TEST(ExitCodes, Guide_HasThemAll) {
  const auto guide = read_file(REHEARSE_ROOT "/docs/GUIDE.md");
  const auto help = run_process(CLI_JOB, {"--help"}, fresh_folder()).out;
  std::istringstream rows(help.substr(help.find("exit codes:\n") + 12));
  int code = 0, count = 0;
  for (std::string meaning; rows >> code && std::getline(rows >> std::ws, meaning); ++count) {
    const auto row = guide.find("\n| " + std::to_string(code) + " | ");
    ASSERT_NE(row, std::string::npos) << code << " " << meaning;
    EXPECT_THAT(guide.substr(row, guide.find('\n', row + 1) - row), HasSubstr(meaning));
  }
  EXPECT_EQ(count, 18);
}

}  // namespace
}  // namespace rehearse::test
