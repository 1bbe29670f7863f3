// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/job/program.h>
#include <rehearse_internal/sim/scenario.h>
#include <sys/stat.h>

// Contract: files from any editor can be read. A file that is no scenario, or cannot be read, is an error with its
// name.

REHEARSE_PROGRAM(filed){.summary = "for these tests",
                        .body = [](rehearse::RankContext&, const rehearse::Parameters&) {}};

namespace rehearse::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string reading(const std::filesystem::path& file) {
  try {
    read_scenario(file);
  } catch (const ScenarioError& error) {
    return error.what();
  }
  return "";
}

class ScenarioFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::filesystem::path file(std::string_view bytes) const {
    std::ofstream(folder_ / "lm.toml", std::ios::binary) << bytes;
    return folder_ / "lm.toml";
  }
  std::string problem(std::string_view bytes) const {
    const auto text = reading(file(bytes));
    return text.starts_with(folder_.string() + "/") ? text.substr(folder_.string().size() + 1) : text;
  }

  // A folder for this test alone, because tests run in parallel.
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ("rehearse_scenario_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(ScenarioFile, Empty_LacksAProgram) {
  for (const char* text : {"", "\n", "# nothing\n"}) {
    EXPECT_EQ(problem(text), "lm.toml: there is no key \"program\": it names what to run, as in program = \"lm_ddp\"");
  }
}

TEST_F(ScenarioFile, OfOtherEditors_IsRead) {
  EXPECT_EQ(read_scenario(file("program = \"filed\"\r\n[world]\r\nranks = 3\r\n")).world.ranks, 3);
  EXPECT_EQ(read_scenario(file("\xEF\xBB\xBFprogram = \"filed\"\n")).program, "filed");
  EXPECT_EQ(read_scenario(file("program = \"filed\"\n[world]\nranks = 3")).world.ranks, 3);
  EXPECT_EQ(problem("program = \"filed\"\r\n[world]\r\nranks = 0\r\n"),
            "lm.toml:3: [world] ranks is 0; it takes an integer from 1 to 65536");
}

TEST_F(ScenarioFile, OfOtherKinds_IsNotToml) {
  const std::string texts[] = {"program = \"m\xFCller\"\n",  // Latin-1
                               "# gr\xFC\xDF"
                               "e\nprogram = \"filed\"\n",
                               std::string("\xFF\xFEp\0r\0o\0", 8),  // UTF-16
                               std::string("program = \"filed\"\n\0", 19),
                               "{\"program\": \"filed\"}\n",
                               "program: filed\n",
                               "\x7F"
                               "ELF\x02\x01\x01"};
  for (const auto& text : texts) {
    EXPECT_THAT(problem(text), StartsWith("lm.toml:"));
    EXPECT_THAT(problem(text), HasSubstr(": not TOML: "));
  }
}

TEST_F(ScenarioFile, ThatCannotBeRead_SaysWhy) {
  EXPECT_EQ(reading(folder_), folder_.string() + ": cannot be read: Is a directory");
  EXPECT_EQ(reading(folder_ / "no.toml"),
            (folder_ / "no.toml").string() + ": cannot be read: No such file or directory");
  EXPECT_EQ(reading(file("") / "x.toml"), (folder_ / "lm.toml/x.toml").string() + ": cannot be read: Not a directory");
  EXPECT_EQ(reading("/dev/zero"), "/dev/zero: is larger than 16 MiB, which no scenario is");
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(reading(pipe), pipe.string() + ": cannot be read: it is a pipe that nobody writes to");
  EXPECT_EQ(reading(""), ": cannot be read: No such file or directory");
}

}  // namespace
}  // namespace rehearse::sim
