// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "cli/process.h"

// Contract: every wrong option, value and path is said in one line with what would be right, exit code 64;
// nothing is run and nothing is written then.
namespace rehearse::test {
namespace {

constexpr const char* kUsageRun = "usage: job run SCENARIO [options]   (see job run --help)\n";

class Arguments : public ::testing::Test {
 protected:
  // Runs the command and checks that it refuses with exactly this.
  void refuses(const std::vector<std::string>& arguments, const std::string& text) {
    const auto finished = run_process(CLI_JOB, arguments, folder_);
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_EQ(finished.err, text);
    EXPECT_EQ(finished.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out"));
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Arguments, NoCommand_IsRefused) {
  refuses({}, "job: which command?\nusage: job run|replay|explain|list ...   (see job --help)\n");
}

TEST_F(Arguments, UnknownCommand_IsRefused) {
  refuses({"rnu", "a.toml"},
          "job: there is no command \"rnu\" (did you mean \"run\"?)\n"
          "usage: job run|replay|explain|list ...   (see job --help)\n");
}

TEST_F(Arguments, UnknownOption_IsRefused) {
  refuses({"run", "a.toml", "--sead=3"},
          std::string("job run: there is no option \"--sead\" (did you mean \"--seed\"?)\n") + kUsageRun);
  refuses({"run", "a.toml", "-q"}, std::string("job run: there is no option \"-q\"\n") + kUsageRun);
  refuses({"replay", "run.rlog", "--seed=3"},
          "job replay: there is no option \"--seed\"\nusage: job replay LOG [options]   (see job replay "
          "--help)\n");
  refuses({"--verison"},
          "job: there is no option \"--verison\" (did you mean \"--version\"?)\n"
          "usage: job run|replay|explain|list ...   (see job --help)\n");
  // Nothing is near enough to be meant.
  refuses({"--verbose"},
          "job: there is no option \"--verbose\"\n"
          "usage: job run|replay|explain|list ...   (see job --help)\n");
}

TEST_F(Arguments, MissingFile_IsRefused) {
  refuses({"run"}, std::string("job run: which scenario?\n") + kUsageRun);
  refuses({"replay"},
          "job replay: which decision log?\nusage: job replay LOG [options]   (see job replay --help)\n");
  refuses({"explain"},
          "job explain: which decision log?\nusage: job explain LOG [options]   (see job explain --help)\n");
}

TEST_F(Arguments, OneWordTooMany_IsRefused) {
  refuses({"run", "a.toml", "b.toml"}, std::string("job run: \"b.toml\" is one word too many\n") + kUsageRun);
  refuses({"list", "sum"},
          "job list: \"sum\" is one word too many\nusage: job list [options]   (see job list --help)\n");
}

TEST_F(Arguments, WrongSeed_IsRefused) {
  refuses({"run", "a.toml", "--seed=seven"},
          std::string(
              "job run: --seed is \"seven\"; it takes an integer from 0 to 2^64 - 1, as in 7 or 0x8f3a\n") +
              kUsageRun);
}

TEST_F(Arguments, WrongRanks_IsRefused) {
  refuses({"run", "a.toml", "--ranks=0"},
          std::string("job run: --ranks is \"0\"; it takes an integer from 1 to 65536\n") + kUsageRun);
  refuses({"run", "a.toml", "--ranks", "4.0"},
          std::string("job run: --ranks is \"4.0\"; it takes an integer from 1 to 65536\n") + kUsageRun);
}

TEST_F(Arguments, ScenarioThatIsNotThere_IsRefused) {
  refuses({"run", "a.toml"}, "a.toml: cannot be read: No such file or directory\n");
}

TEST_F(Arguments, ScenarioWithMistakes_SaysAllOfThem) {
  write_file(folder_ / "a.toml", "program = \"sun\"\n[world]\nranks = 0\nsede = 3\n");
  refuses(
      {"run", "a.toml"},
      "a.toml:1: program \"sun\" is not in this executable (did you mean \"sum\"?); it has moody, skip, sum, "
      "swap, "
      "throws, waits, wrong. Run the scenario with the executable whose source says REHEARSE_PROGRAM(sun)\n"
      "a.toml:3: [world] ranks is 0; it takes an integer from 1 to 65536\n"
      "a.toml:4: there is no key \"sede\" in [world] (did you mean \"seed\"?); it has ranks, seed, schedule, "
      "timeout, buffered_sends, stack, steps_max\n");
}

TEST_F(Arguments, Version_IsPrinted) {
  const auto finished = run_process(CLI_JOB, {"--version"}, folder_);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "rehearse 0.1.0\n");
}

TEST_F(Arguments, Help_NamesEveryOption) {
  const auto finished = run_process(CLI_JOB, {"run", "--help"}, folder_);
  EXPECT_EQ(finished.exit_code, 0);
  for (const char* option : {"--help", "--seed", "--ranks", "--check-determinism", "--output", "--json",
                             "--no-color", "--quiet"}) {
    EXPECT_NE(finished.out.find(option), std::string::npos) << option << " in\n" << finished.out;
  }
}

TEST_F(Arguments, List_PrintsProgramsAndParameters) {
  const auto finished = run_process(CLI_JOB, {"list"}, folder_);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out,
            "moody: takes another way each time\n"
            "skip: rank 1 leaves out one all-reduce\n"
            "sum: adds the ranks up, and checks the sum\n"
            "  steps = 4           # all-reduces, one after the other; 1 to 1000\n"
            "  scale = 1.0         # what each rank's number is multiplied by\n"
            "  greeting = \"hello\"  # shown with the progress\n"
            "  show = true         # show progress\n"
            "swap: rank 1 broadcasts where the others reduce\n"
            "throws: rank 1 throws\n"
            "waits: rank 0 polls for what never comes\n"
            "wrong: its own check does not hold\n");
}

}  // namespace
}  // namespace rehearse::test
