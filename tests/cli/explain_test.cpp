// SPDX-License-Identifier: BSD-3-Clause
// Contract: `explain` takes the dumps that the flight recorders of a job left, as files or as a folder, and prints the
// report of that job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>

#include "cli/process.h"

namespace rehearse::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ExplainDumps : public testing::Test {
 protected:
  ExplainDumps() {
    std::filesystem::copy(std::string(RECORDED_DUMPS) + "/nccl_skip", folder_ / "dumps");
    write_file(folder_ / "skip.toml", "program = \"skip\"\n[world]\nranks = 3\n");
  }

  Finished job(const std::vector<std::string>& arguments) { return run_process(CLI_JOB, arguments, folder_); }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(ExplainDumps, OfAFolderOrOfFiles_AreOneReport) {
  const auto of_folder = job({"explain", "dumps"});
  EXPECT_EQ(of_folder.exit_code, 3);
  EXPECT_EQ(of_folder.err, "");
  EXPECT_THAT(of_folder.out, StartsWith("DEADLOCK: allreduce #16 on group \"0:default_pg\": rank 1 has not come; "));
  EXPECT_THAT(of_folder.out, HasSubstr("\nculprit: rank 1 at train.py:20 in skip\n"));
  EXPECT_THAT(of_folder.out, HasSubstr("\nstack of rank 1 in allreduce #15 on group \"0:default_pg\":\n"
                                       "  skip at /job/train.py:20\n"));
  EXPECT_EQ(job({"explain", "dumps/dump_rank_1", "dumps/dump_rank_0"}).out, of_folder.out);
}

TEST_F(ExplainDumps, AsAPage) {
  const auto page = job({"html", "dumps", "--output=hang.html"});
  EXPECT_EQ(page.exit_code, 0);
  EXPECT_EQ(page.err, "");
  EXPECT_EQ(page.out, "page: hang.html\n");
  EXPECT_THAT(read_file(folder_ / "hang.html"), HasSubstr("rank 1 has not come"));
  EXPECT_EQ(job({"html", "dumps/dump_rank_0", "dumps/dump_rank_1"}).out, "page: dumps/report.html\n");
}

TEST_F(ExplainDumps, AsAPage_OverwriteNothing) {
  const auto onto_itself = job({"html", "dumps/dump_rank_0", "--output=dumps/dump_rank_0"});
  EXPECT_EQ(onto_itself.exit_code, 64);
  EXPECT_THAT(onto_itself.err, HasSubstr("--output=dumps/dump_rank_0: is the input of the page"));
  write_file(folder_ / "dumps/report.html", "another page");
  const auto there = job({"html", "dumps/dump_rank_0"});
  EXPECT_EQ(there.exit_code, 64);
  EXPECT_THAT(there.err, HasSubstr("dumps/report.html: exists already; name another file"));
  EXPECT_EQ(read_file(folder_ / "dumps/report.html"), "another page");
}

TEST_F(ExplainDumps, OfAFolderInWhichOneIsDamaged_AreRefused) {
  write_file(folder_ / "dumps/dump_rank_0", "");
  const auto finished = job({"explain", "dumps"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_THAT(finished.err,
              HasSubstr("dumps/dump_rank_0: is named as a dump of dump_rank_*, and is neither a pickle nor "
                        "JSON. Give the others by name if it is lost"));
  EXPECT_EQ(job({"explain", "dumps/dump_rank_1"}).exit_code, 0);
}

TEST_F(ExplainDumps, OfOneRank_NameTheRanksWithoutDumps) {
  const auto finished = job({"explain", "dumps/dump_rank_0"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.out, HasSubstr("\nremark: rank 1 left no dump: what it called is not known\n"));
}

TEST_F(ExplainDumps, AsJson_AreAReportThatIsExplainedAgain) {
  const auto json = job({"explain", "dumps", "--json"});
  const auto report = sim::report_from_json(json.out);
  ASSERT_TRUE(report.dumps);
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{1});
  write_file(folder_ / "report.json", json.out);
  EXPECT_EQ(job({"explain", "report.json"}).out, job({"explain", "dumps"}).out);
}

// A simulated run leaves one dump with all its ranks.
TEST_F(ExplainDumps, FlightRecorderOfARun_NamesTheSameCulprit) {
  ASSERT_EQ(job({"run", "skip.toml", "--quiet"}).exit_code, 3);
  const auto finished = job({"explain", "rehearse-out/skip/flight_recorder.json"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.out, StartsWith("DEADLOCK: "));
  EXPECT_THAT(finished.out, HasSubstr("\nculprit: rank 1\n"));
}

TEST_F(ExplainDumps, ThatCannotBeRead_AreRefusedByName) {
  write_file(folder_ / "dumps/dump_rank_1", "\x80\x02}");
  const auto finished = job({"explain", "dumps"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err, "dumps/dump_rank_1: ends in the middle of a value, at byte 3\n");
  const auto none = job({"explain", "."});
  EXPECT_EQ(none.exit_code, 64);
  EXPECT_EQ(none.err, ".: has no dumps, which are pickles or JSON with names that end in a rank, as in dump_rank_3\n");
}

}  // namespace
}  // namespace rehearse::test
