// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.h"

// Contract: in bash, Tab offers commands, the options of a command, files that fit, and programs: the scripts ask the
// command for them. The tests run the other shells' scripts if those shells are installed, and otherwise skip with a
// message.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Completion : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "train.toml", "");
    write_file(folder_ / "trace.json", "");
    write_file(folder_ / "run.rlog", "");
    std::filesystem::create_directories(folder_ / "traces");
    std::filesystem::create_directories(bin_);
    std::filesystem::remove(bin_ / "job");
    std::filesystem::create_symlink(CLI_JOB, bin_ / "job");
    for (const char* shell : {"bash", "zsh", "fish"}) {
      const auto script = run_process(CLI_JOB, {"completion", shell}, folder_);
      ASSERT_EQ(script.exit_code, 0) << script.err;
      write_file(folder_ / (std::string("complete.") + shell), script.out);
    }
  }

  Finished shell(const std::string& program, const std::string& line) const {
    return run_process("/usr/bin/env", {program, "-c", line}, folder_,
                       {"PATH=" + bin_.string() + ":" + std::getenv("PATH")});
  }

  // What bash offers while the user types the last of these words, one offer per line.
  std::string offered(const std::string& words) const {
    return shell("bash", "compopt() { :; }; source complete.bash; COMP_WORDS=(job " + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _job; printf '%s\\n' \"${COMPREPLY[@]}\"")
        .out;
  }

  bool has(const std::string& program) const { return shell("sh", "command -v " + program).exit_code == 0; }

  const std::filesystem::path folder_ = fresh_folder();
  const std::filesystem::path bin_ = folder_.string() + "_bin";  // holds the command as "job"
};

TEST_F(Completion, Bash_OffersCommands) {
  EXPECT_EQ(offered("re"), "replay\n");
  EXPECT_EQ(offered("s"), "sweep\nsplit\n");
#ifdef CLI_HAS_REAL
  const std::string validate = "validate\n";
#else
  const std::string validate;
#endif
  EXPECT_EQ(offered("''"), "run\nsweep\nreplay\nexplain\nhtml\n" + validate +
                               "merge\nsplit\nlist\ncompletion\nhelp\n--help\n--version\n");
}

TEST_F(Completion, Bash_OffersOptionsOfTheCommand) {
  EXPECT_EQ(offered("run train.toml --se"), "--seed=\n");
  EXPECT_EQ(offered("sweep --se"), "--seeds=\n");
  EXPECT_EQ(offered("explain --"), "--help\n--json\n--no-color\n");
}

TEST_F(Completion, Bash_OffersFilesThatFit) {
  EXPECT_EQ(offered("run tra"), "traces\ntrain.toml\n");
  EXPECT_EQ(offered("replay ''"), "traces\nrun.rlog\ntrain.toml\n");
  EXPECT_EQ(offered("explain t"), "traces\ntrace.json\ntrain.toml\n");
  // bash splits --output=tra into these three words.
  EXPECT_EQ(offered("run train.toml --output = tra"), "traces\n");
  EXPECT_EQ(offered("run train.toml --seed = 1"), "\n");
  write_file(folder_ / "model.pt2", "");
  EXPECT_EQ(offered("split m"), "model.pt2\n");
}

TEST_F(Completion, Bash_OffersProgramsShellsAndTopics) {
  EXPECT_EQ(offered("list s"), "saves\nskip\nsum\nswap\n");
  EXPECT_EQ(offered("completion ''"), "bash\nfish\nzsh\n");
  EXPECT_EQ(offered("help ru"), "run\n");
  EXPECT_EQ(offered("split model.pt2 --rules = d"), "default\nddp\n");
}

TEST_F(Completion, Fish_OffersTheSame) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed: its script was made, not tried";
  const auto offers = [&](const std::string& line) {
    return shell("fish", "source complete.fish; complete -C '" + line + "'").out;
  };
  EXPECT_THAT(offers("job re"), HasSubstr("replay\t"));
  EXPECT_THAT(offers("job run --se"), HasSubstr("--seed"));
  EXPECT_THAT(offers("job run tra"), HasSubstr("train.toml"));
  EXPECT_THAT(offers("job replay r"), HasSubstr("run.rlog"));
  EXPECT_THAT(offers("job run t"), StartsWith("train.toml\n"));  // the files that fit less well follow
  EXPECT_THAT(offers("job list s"), HasSubstr("skip"));
  EXPECT_THAT(offers("job help re"), HasSubstr("replay"));
}

// Tries the script as a sourced file and as a file of $fpath. The script passes its offers to functions of zsh.
TEST_F(Completion, Zsh_OffersTheSame) {
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed: its script was made, not tried";
  const auto sourced =
      shell("zsh", "autoload -U compinit && compinit -D -u && source ./complete.zsh && print $_comps[job]");
  EXPECT_EQ(sourced.err, "");
  EXPECT_EQ(sourced.out, "_job\n");
  std::filesystem::copy_file(folder_ / "complete.zsh", folder_ / "_job");
  const auto found = [&](const std::string& words) {
    return shell("zsh",
                 "fpath=(. $fpath); autoload -U _job; compset() { :; }; _files() { print -r -- _files $@; }; "
                 "_describe() { print -rl -- $valued $plain; }; words=(job " +
                     words + "); CURRENT=${#words}; _job")
        .out;
  };
  EXPECT_THAT(found("''"), HasSubstr("\nreplay:Repeats the run of a decision log"));
  EXPECT_THAT(found("run --"), StartsWith("--seed=:instead of the scenario's [world] seed\n"));
  EXPECT_THAT(found("run --"), HasSubstr("\n--swarm:draw faults"));
  EXPECT_THAT(found("run ''"), StartsWith("_files -g *.(toml)\n"));
  EXPECT_THAT(found("run --output="), StartsWith("_files -/\n"));
  EXPECT_THAT(found("split model.pt2 --rules=d"), StartsWith("default\nddp\n"));
  EXPECT_THAT(found("list s"), StartsWith("saves\nskip\n"));
}

// A full stop within a sentence, as in a file's name, does not end it.
TEST_F(Completion, Offers_DescribeEachCommandByItsFirstSentence) {
  const std::string html = "Writes the page of a run again, as report.html beside its input, without running anything";
  EXPECT_EQ(run_process(CLI_JOB, {"__complete", "ht"}, folder_).out, "html\t" + html + "\n");
  EXPECT_THAT(run_process(CLI_JOB, {"--help"}, folder_).out, HasSubstr("report.html"));
}

TEST_F(Completion, Offers_AreThoseOfTheWordBeingTyped) {
  const auto offered_behind = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    return run_process(CLI_JOB, words, folder_).out;
  };
  EXPECT_EQ(offered_behind({}), "");
  EXPECT_EQ(offered_behind({"run", "t"}), "@files toml\n");
  EXPECT_EQ(offered_behind({"run", "a.toml", "--output", "t"}), "@folders\n");
  EXPECT_EQ(offered_behind({"run", "a.toml", "--checks=", ""}), "@files toml\n");
  EXPECT_EQ(offered_behind({"run", "a.toml", "--checks=n"}), "none\n");
  EXPECT_EQ(offered_behind({"run", "a.toml", "--checks", "=", "n"}), "none\n");
  EXPECT_EQ(offered_behind({"run", "a.toml", "--checks", "="}), "none\ndefault\nall\n");
  EXPECT_EQ(offered_behind({"run", "a.toml", "--schedule", "p"}), "pct\npos\n");
  EXPECT_EQ(offered_behind({"run", "a.toml", "--check-determinism", "a"}), "@files toml\n");
  EXPECT_EQ(offered_behind({"rnu", "--"}), "");
}

TEST_F(Completion, UnknownShell_IsRefused) {
  const auto finished = run_process(CLI_JOB, {"completion", "fisch"}, folder_);
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_EQ(finished.err,
            "job completion: there is no script for the shell \"fisch\" (did you mean \"fish\"?); there is one "
            "for bash, fish, zsh\n"
            "usage: job completion SHELL [options]   (see job completion --help)\n");
}

}  // namespace
}  // namespace rehearse::test
