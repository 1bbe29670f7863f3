// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/run_log.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

RunLog running_log() {
  RunLog log;
  log.program = "lm_ddp";
  log.seed = 0x8f3a;
  log.build = "2ae1b8ab";
  log.scenario_path = "examples/lm \\ddp\n.toml";
  log.scenario_text = "program = \"lm_ddp\"\n\n[world]\nranks = 4\n";
  log.options = {"--ranks=8", "--set=steps=3"};
  return log;
}

RunLog finished_log() {
  RunLog log = running_log();
  RunLog::Finished finished;
  finished.report.verdict = Verdict::deadlock;
  finished.report.headline = "allreduce #7 on group \"world\": missing rank 2";
  finished.report.identity = 0xc0ffee;
  finished.report.seed = 0x8f3a;
  finished.report.ranks = 8;
  finished.decisions = {{ChoiceKind::next_fiber, 8, 3}, {ChoiceKind::latency, 16, 15}, {ChoiceKind::fault, 2, 0}};
  log.finished = finished;
  return log;
}

std::string load_error(std::string_view bytes) {
  try {
    parse_run_log(bytes, "run.rlog");
  } catch (const RunLogError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunLog, Running_IsReadableTextWithTheSeed) {
  EXPECT_EQ(run_log_bytes(running_log()),
            "rehearse run log 2\n"
            "state: running\n"
            "program: lm_ddp\n"
            "seed: 0x8f3a\n"
            "build: 2ae1b8ab\n"
            "scenario: examples/lm \\\\ddp\\n.toml\n"
            "option: --ranks=8\n"
            "option: --set=steps=3\n"
            "scenario text: 38\n"
            "program = \"lm_ddp\"\n\n[world]\nranks = 4\n\n"
            "checksum: 0x9c9f3650ceab6378\n");
}

TEST(RunLog, Finished_StartsWithVerdictAndIdentity) {
  EXPECT_EQ(run_log_bytes(finished_log()).substr(0, 74),
            "rehearse run log 2\nstate: finished\nverdict: DEADLOCK\nidentity: 0xc0ffee\npr");
}

void expect_same(const RunLog& found, const RunLog& expected) {
  EXPECT_EQ(found.program, expected.program);
  EXPECT_EQ(found.seed, expected.seed);
  EXPECT_EQ(found.build, expected.build);
  EXPECT_EQ(found.scenario_path, expected.scenario_path);
  EXPECT_EQ(found.scenario_text, expected.scenario_text);
  EXPECT_EQ(found.options, expected.options);
  ASSERT_EQ(found.finished.has_value(), expected.finished.has_value());
  if (!expected.finished) return;
  EXPECT_EQ(found.finished->decisions, expected.finished->decisions);
  EXPECT_EQ(to_json(found.finished->report), to_json(expected.finished->report));
}

TEST(RunLog, BothStates_ReadBackTheSame) {
  expect_same(parse_run_log(run_log_bytes(running_log()), ""), running_log());
  expect_same(parse_run_log(run_log_bytes(finished_log()), ""), finished_log());
  expect_same(parse_run_log(run_log_bytes(RunLog{}), ""), RunLog{});
}

TEST(RunLog, NotALogOrOtherVersion_SaysWhich) {
  EXPECT_EQ(load_error(""), "run.rlog: is not a run log of rehearse");
  EXPECT_EQ(load_error("{\"traceEvents\": []}"), "run.rlog: is not a run log of rehearse");
  EXPECT_EQ(load_error("rehearse run log 7\nstate: odd\n"),
            "run.rlog: is a run log of format 7; this rehearse reads format 2");
}

// A file cut off at any byte must be recognised, and not read as a shorter log.
TEST(RunLog, CutOffAnywhere_SaysHowFarItGoes) {
  const std::string bytes = run_log_bytes(finished_log());
  for (std::size_t size = 19; size < bytes.size(); ++size) {
    const std::string start = "run.rlog: is cut off after " + std::to_string(size) + " bytes, in its ";
    EXPECT_EQ(load_error(std::string_view(bytes).substr(0, size)).substr(0, start.size()), start);
  }
  const auto cut_in = [&](const char* text) {
    return load_error(std::string_view(bytes).substr(0, bytes.find(text) + 3));
  };
  EXPECT_EQ(cut_in("seed: "), "run.rlog: is cut off after 91 bytes, in its seed");
  EXPECT_EQ(cut_in("[world]"), "run.rlog: is cut off after 233 bytes, in its scenario text");
  const std::size_t decisions = bytes.find("decisions: 3 8\n") + 16;  // one byte of the decisions
  EXPECT_EQ(load_error(std::string_view(bytes).substr(0, decisions)),
            "run.rlog: is cut off after " + std::to_string(decisions) + " bytes, in its decisions");
  EXPECT_EQ(cut_in("\"rank_lines\""),
            "run.rlog: is cut off after " + std::to_string(bytes.find("\"rank_lines\"") + 3) + " bytes, in its report");
}

TEST(RunLog, AnyByteChanged_IsFound) {
  const std::string bytes = run_log_bytes(finished_log());
  for (std::size_t at = 19; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_NE(load_error(damaged), "no error") << at;
  }
  std::string damaged = bytes;
  damaged[100] = '!';
  EXPECT_EQ(load_error(damaged), "run.rlog: is damaged: its checksum does not fit its content");
}

class RunLogFile : public testing::Test {
 protected:
  fs::path folder_ = fs::path(testing::TempDir()) /
                     ("rehearse_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }
};

TEST_F(RunLogFile, WrittenBeforeAndAfterTheRun_OneFileThatReadsBack) {
  const fs::path file = folder_ / "run.rlog";
  write_run_log(file, running_log());
  EXPECT_FALSE(read_run_log(file).finished.has_value());
  EXPECT_EQ(read_run_log(file).seed, 0x8f3au);
  write_run_log(file, finished_log());
  expect_same(read_run_log(file), finished_log());
  EXPECT_EQ(files(), 1u);
}

TEST_F(RunLogFile, CannotBeWritten_OldFileStaysAndNothingIsLeftBehind) {
  const fs::path occupied = folder_ / "run.rlog";
  fs::create_directories(occupied / "a folder of that name");
  try {
    write_run_log(occupied, running_log());
    FAIL();
  } catch (const RunLogError& error) {
    EXPECT_EQ(error.what(), occupied.string() + ": cannot be written: Is a directory");
  }
  EXPECT_EQ(files(), 1u);
  try {
    write_run_log(folder_ / "missing" / "run.rlog", running_log());
    FAIL();
  } catch (const RunLogError& error) {
    EXPECT_EQ(error.what(),
              (folder_ / "missing" / "run.rlog").string() + ": cannot be written: No such file or directory");
  }
}

TEST_F(RunLogFile, NoSuchFile_SaysSo) {
  try {
    read_run_log(folder_ / "none.rlog");
    FAIL();
  } catch (const RunLogError& error) {
    EXPECT_EQ(error.what(), (folder_ / "none.rlog").string() + ": cannot be read: No such file or directory");
  }
}

std::string error_of_reading(const fs::path& file) {
  try {
    read_run_log(file);
  } catch (const RunLogError& error) {
    return error.what();
  }
  return "no error";
}

// read_run_log() refuses an endless file and a huge one, without the memory that reading them would take.
TEST_F(RunLogFile, WithoutEnd_IsRefused) {
  EXPECT_EQ(error_of_reading("/dev/zero"), "/dev/zero: is not a run log of rehearse");
  const auto file = folder_ / "run.rlog";
  write_run_log(file, running_log());
  fs::resize_file(file, std::uintmax_t{10} << 30);  // a sparse file, which takes no space
  EXPECT_EQ(error_of_reading(file), file.string() + ": is larger than 4096 MiB, which no run log is");
}

TEST(ExecutableBuildId, Executable_HexDigitsAlwaysTheSame) {
  const std::string id = executable_build_id();
  EXPECT_EQ(id, executable_build_id());
  if (id == "none") GTEST_SKIP() << "linked without a build id";
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
  EXPECT_EQ(id.size() % 2, 0u);
}

}  // namespace
}  // namespace rehearse::sim
