// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"

// Contract: the command reports each wrong option, value or path in one line that says what is wrong and, if possible,
// what would be right. A line of usage often follows. The command then runs nothing, writes nothing and exits with code
// 64.
namespace rehearse::test {
namespace {

#ifdef CLI_HAS_REAL
constexpr bool kHasReal = true;
constexpr const char* kUsage =
    "usage: job run|sweep|replay|explain|html|validate|merge|split|list|completion ...   (see job --help)\n";
#else
constexpr bool kHasReal = false;
constexpr const char* kUsage =
    "usage: job run|sweep|replay|explain|html|merge|split|list|completion ...   (see job --help)\n";
#endif
constexpr const char* kUsageRun = "usage: job run SCENARIO [options]   (see job run --help)\n";

class Arguments : public ::testing::Test {
 protected:
  void refuses(const std::vector<std::string>& arguments, const std::string& text) {
    const auto finished = run_process(CLI_JOB, arguments, folder_);
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_EQ(finished.err, text);
    EXPECT_EQ(finished.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out"));
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Arguments, NoCommand_IsRefused) { refuses({}, std::string("job: which command?\n") + kUsage); }

TEST_F(Arguments, UnknownCommand_IsRefused) {
  refuses({"rnu", "a.toml"}, std::string("job: there is no command \"rnu\" (did you mean \"run\"?)\n") + kUsage);
  refuses({"RUN", "a.toml"}, std::string("job: there is no command \"RUN\" (did you mean \"run\"?)\n") + kUsage);
  refuses({"train"}, std::string("job: there is no command \"train\"\n") + kUsage);
}

TEST_F(Arguments, UnknownOption_IsRefused) {
  refuses({"run", "a.toml", "--sead=3"},
          std::string("job run: there is no option \"--sead\" (did you mean \"--seed\"?)\n") + kUsageRun);
  refuses({"run", "a.toml", "--SEED=3"},
          std::string("job run: there is no option \"--SEED\" (did you mean \"--seed\"?)\n") + kUsageRun);
  refuses({"run", "a.toml", "-q"}, std::string("job run: there is no option \"-q\"\n") + kUsageRun);
  refuses({"run", "--", "a.toml"}, std::string("job run: which scenario?\n") + kUsageRun);
  refuses({"explain", "run.rlog", "--seed=3"},
          "job explain: there is no option \"--seed\"\nusage: job explain FILE... [options]   (see job explain "
          "--help)\n");
  refuses({"--verison"}, std::string("job: there is no option \"--verison\" (did you mean \"--version\"?)\n") + kUsage);
  refuses({"--verbose"}, std::string("job: there is no option \"--verbose\"\n") + kUsage);
}

TEST_F(Arguments, OptionBeforeTheCommand_SaysWhereItGoes) {
  refuses({"--seed=3", "run", "a.toml"},
          std::string("job: --seed=3 goes after the command, as in job run --seed=3\n") + kUsage);
}

TEST_F(Arguments, MissingFile_IsRefused) {
  refuses({"run"}, std::string("job run: which scenario?\n") + kUsageRun);
  refuses({"run", ""}, std::string("job run: which scenario?\n") + kUsageRun);
  refuses({"replay"}, "job replay: which decision log?\nusage: job replay LOG [options]   (see job replay --help)\n");
  refuses({"explain"},
          "job explain: which decision log, report or dumps?\nusage: job explain FILE... [options]   (see job explain "
          "--help)\n");
}

TEST_F(Arguments, OneWordTooMany_IsRefused) {
  refuses({"run", "a.toml", "b.toml"}, std::string("job run: \"b.toml\" is one word too many\n") + kUsageRun);
  refuses({"list", "sum", "swap"},
          "job list: \"swap\" is one word too many\nusage: job list [PROGRAM] [options]   (see job list "
          "--help)\n");
}

TEST_F(Arguments, MissingValue_IsRefused) {
  refuses({"run", "a.toml", "--seed"}, std::string("job run: --seed needs a value, as in --seed=7\n") + kUsageRun);
  refuses({"run", "--output=", "a.toml"},
          std::string("job run: --output needs a value, as in --output=out\n") + kUsageRun);
  refuses({"run", "a.toml", "--seed", ""}, std::string("job run: --seed needs a value, as in --seed=7\n") + kUsageRun);
}

TEST_F(Arguments, ValueOfAFlag_IsRefused) {
  refuses({"run", "a.toml", "--json=yes"}, std::string("job run: --json takes no value\n") + kUsageRun);
  refuses({"run", "--help=me"}, std::string("job run: --help takes no value\n") + kUsageRun);
}

TEST_F(Arguments, OptionGivenTwice_IsRefused) {
  refuses({"run", "a.toml", "--seed=1", "--seed=2"}, std::string("job run: --seed is given twice\n") + kUsageRun);
}

TEST_F(Arguments, WrongSeed_IsRefused) {
  for (const std::string seed : {"seven", "-1", "1.5", "0x", "18446744073709551616"}) {
    refuses(
        {"run", "a.toml", "--seed=" + seed},
        "job run: --seed is \"" + seed + "\"; it takes an integer from 0 to 2^64 - 1, as in 7 or 0x8f3a\n" + kUsageRun);
  }
}

TEST_F(Arguments, WrongRanks_IsRefused) {
  for (const std::string ranks : {"0", "-3", "4.0", "65537", "99999999999"}) {
    refuses({"run", "a.toml", "--ranks", ranks},
            "job run: --ranks is \"" + ranks + "\"; it takes an integer from 1 to 65536\n" + kUsageRun);
  }
}

TEST_F(Arguments, ScenarioThatIsNotThere_IsRefused) {
  refuses({"run", "a.toml"}, "a.toml: cannot be read: No such file or directory\n");
  write_file(folder_ / "train.toml", "");
  for (const std::string name : {"train", "Train.toml", "trian.toml", "train.tml"})
    refuses({"run", name}, name + ": cannot be read: No such file or directory (did you mean \"train.toml\"?)\n");
}

TEST_F(Arguments, FolderOfARun_IsRefusedWithThePathOfItsLog) {
  std::filesystem::create_directories(folder_ / "out");
  write_file(folder_ / "out/run.rlog", "");
  for (const char* command : {"replay", "explain"})
    refuses({command, "out"}, "out: is a folder; the log in it is out/run.rlog\n");
}

TEST_F(Arguments, ScenarioWithMistakes_SaysAllOfThem) {
  write_file(folder_ / "a.toml", "program = \"sun\"\n[world]\nranks = 0\nsede = 3\n");
  refuses(
      {"run", "a.toml"},
      "a.toml:1: program \"sun\" is not in this executable (did you mean \"sum\"?); it has blocks, dies, forever, "
      "moody, "
      "prints, "
      "races, "
      "saves, skip, sum, swap, throws, waits, wrong. Run the scenario with the executable whose source says "
      "REHEARSE_PROGRAM(sun)\n"
      "a.toml:3: [world] ranks is 0; it takes an integer from 1 to 65536\n"
      "a.toml:4: there is no key \"sede\" in [world] (did you mean \"seed\"?); it has ranks, seed, schedule, "
      "pct_depth, pct_steps, preempt, patience, file_time, timeout, date, buffered_sends, coalesced_as_one, memory, "
      "stack, steps_max\n");
}

TEST_F(Arguments, HelpAboutNothing_IsRefused) {
  refuses({"help", "replya"}, std::string("job: there is no command \"replya\" (did you mean \"replay\"?)\n") + kUsage);
  refuses({"help", "run", "sweep"}, std::string("job: \"sweep\" is one word too many\n") + kUsage);
}

TEST_F(Arguments, LogInTheScenariosPlace_IsNamedAsALog) {
  for (const char* command : {"run", "sweep"}) {
    refuses({command, "out/run.rlog", command[0] == 's' ? "--seeds=1..2" : "--seed=1"},
            "out/run.rlog: is a decision log, not a scenario; run it again with job replay out/run.rlog\n");
  }
}

TEST_F(Arguments, PathThatIsAFolder_IsRefused) {
  for (const char* command : {"run", "replay"}) refuses({command, "."}, ".: cannot be read: Is a directory\n");
}

// The command does not go on reading an endless file, and does not wait for a pipe's writer.
TEST_F(Arguments, PathThatIsNoFile_IsRefused) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const char* command : {"run", "replay", "explain"})
    refuses({command, "pipe"}, "pipe: cannot be read: it is a pipe that nobody writes to\n");
  refuses({"run", "/dev/zero"}, "/dev/zero: is larger than 16 MiB, which no scenario is\n");
  refuses({"replay", "/dev/zero"}, "/dev/zero: is not a run log of rehearse\n");
  refuses({"explain", "/dev/zero"},
          "/dev/zero: is neither a run log (run.rlog), nor a report (report.json), nor a flight recorder's dump\n");
  write_file(folder_ / "report.json", "{\"rehearse_report\": 1}\n" + std::string(100, ' '));
  std::filesystem::resize_file(folder_ / "report.json", std::uintmax_t{10} << 30);
  refuses({"explain", "report.json"}, "report.json: is larger than 256 MiB, which no run log, report or dump is\n");
}

TEST_F(Arguments, Version_IsPrinted) {
  const auto finished = run_process(CLI_JOB, {"--version"}, folder_);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "rehearse 0.1.0\n");
}

TEST_F(Arguments, Help_ReadsWell) {
  if (!kHasReal) GTEST_SKIP() << "built without the real mode, which this help lists (REHEARSE_REAL=OFF)";
  const auto help = run_process(CLI_JOB, {"--help"}, folder_);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(help.out, read_file(CLI_GOLDEN "/help.txt"));
  EXPECT_EQ(run_process(CLI_JOB, {"-h"}, folder_).out, help.out);
  EXPECT_EQ(run_process(CLI_JOB, {"help"}, folder_).out, help.out);
  EXPECT_EQ(run_process(CLI_JOB, {"help", "help"}, folder_).out, help.out);
}

TEST_F(Arguments, HelpOfACommand_NamesItsOptions) {
  if (!kHasReal) GTEST_SKIP() << "built without the real mode, which this help lists (REHEARSE_REAL=OFF)";
  const auto help = run_process(CLI_JOB, {"run", "--help"}, folder_);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out, read_file(CLI_GOLDEN "/help_run.txt"));
  EXPECT_EQ(run_process(CLI_JOB, {"help", "run"}, folder_).out, help.out);
  EXPECT_EQ(run_process(CLI_JOB, {"sweep", "--help"}, folder_).out, read_file(CLI_GOLDEN "/help_sweep.txt"));
  EXPECT_EQ(run_process(CLI_JOB, {"split", "--help"}, folder_).out, read_file(CLI_GOLDEN "/help_split.txt"));
}

TEST_F(Arguments, ListOfAnUnknownProgram_IsRefused) {
  refuses(
      {"list", "sun"},
      "job list: there is no program \"sun\" in this executable (did you mean \"sum\"?); it has blocks, dies, forever, "
      "moody, prints, races, saves, skip, sum, swap, throws, waits, wrong\n");
}

TEST_F(Arguments, ListOfOneProgram_PrintsThatOne) {
  const auto finished = run_process(CLI_JOB, {"list", "skip"}, folder_);
  EXPECT_EQ(finished.out, "skip: rank 1 leaves out one all-reduce\n");
}

TEST_F(Arguments, ListAsJson_HasTypesAndBounds) {
  const auto finished = run_process(CLI_JOB, {"list", "sum", "--json"}, folder_);
  EXPECT_EQ(finished.exit_code, 0);
  const auto json = nlohmann::json::parse(finished.out);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["name"], "sum");
  EXPECT_EQ(json[0]["summary"], "adds the ranks up, and checks the sum");
  ASSERT_EQ(json[0]["parameters"].size(), 4u);
  const auto& steps = json[0]["parameters"][0];
  EXPECT_EQ(steps, nlohmann::json::parse(R"({"name": "steps", "summary": "all-reduces, one after the other",
                                             "default": 4, "least": 1.0, "most": 1000.0})"));
  EXPECT_EQ(json[0]["parameters"][2]["default"], "hello");
  EXPECT_EQ(json[0]["parameters"][3]["default"], true);
}

TEST_F(Arguments, List_PrintsProgramsAndParameters) {
  const auto finished = run_process(CLI_JOB, {"list"}, folder_);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out,
            "blocks: rank 1 waits in the kernel\n"
            "dies: rank 2 ends the process\n"
            "  by = \"abort\"    # or fault, kill, exit3 and so on: see end_process()\n"
            "  closes = false  # it closes the files that others have opened, before that\n"
            "forever: all-reduces until somebody stops it\n"
            "  compute = false  # rank 2 computes, and never switches\n"
            "moody: takes another way each time\n"
            "  fails = false  # rank 1 throws, or leaves out the barrier\n"
            "prints: each rank prints a line\n"
            "races: throws when rank 1 is first, hangs when rank 2 is, dies when rank 3 is and may\n"
            "  may_die = false      # end the process then\n"
            "  may_compute = false  # rank 2 computes forever, instead of the hang\n"
            "saves: rank 1 writes a file\n"
            "  file = \"{scratch}/model\"  # where\n"
            "  holds = true              # whether the check after it holds\n"
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
