// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/job/runner.h>

#include "cli/commands.h"
#include "cli/grammar/arguments.h"
#include "cli/grammar/help.h"
#include "cli/grammar/usage_error.h"

// Contract: a program offers only what it links. For the rest, an error names the CMake component that provides it.
// This binary links rehearse::main, but neither rehearse::split nor rehearse::real. The programs that the other tests
// start link rehearse::split, too, and rehearse::real if it is built.
namespace rehearse::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNeedsReal =
    " needs the real mode, which is not part of this program: link rehearse::real (find_package(rehearse COMPONENTS "
    "main real))\n";
constexpr const char* kUsage = "usage: job run|sweep|replay|explain|html|merge|list|completion ...   (see job --help)";
constexpr const char* kUsageRun = "usage: job run SCENARIO [options]   (see job run --help)";

std::string refusal(std::vector<const char*> words) {
  words.insert(words.begin(), "job");
  try {
    parse_arguments(static_cast<int>(words.size()), words.data());
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Components, CommandOfALibraryThatIsNotLinked_NamesTheComponent) {
  const auto text = std::string(
                        "job: split is not part of this program: link rehearse::split (find_package(rehearse "
                        "COMPONENTS main split))\n") +
                    kUsage;
  EXPECT_EQ(refusal({"split", "model.pt2"}), text);
  EXPECT_EQ(refusal({"help", "split"}), text);
}

TEST(Components, CommandOfTheRealMode_NamesTheComponent) {
  EXPECT_EQ(refusal({"validate", "a.toml"}), std::string("job: validate") + kNeedsReal + kUsage);
}

TEST(Components, OptionOfTheRealMode_NamesTheComponent) {
  for (const char* option : {"--with=gloo", "--with=", "--with"})
    EXPECT_EQ(refusal({"run", "a.toml", option}), std::string("job run: --with") + kNeedsReal + kUsageRun);
  EXPECT_EQ(refusal({"run", "--with", "gloo", "a.toml"}), std::string("job run: --with") + kNeedsReal + kUsageRun);
  EXPECT_EQ(refusal({"run", "a.toml", "--real"}), std::string("job run: --real") + kNeedsReal + kUsageRun);
  EXPECT_EQ(refusal({"--real", "run", "a.toml"}), std::string("job: --real") + kNeedsReal + kUsage);
}

TEST(Components, OptionThatTheCommandNeverHas_IsUnknown) {
  EXPECT_THAT(refusal({"list", "--real"}), HasSubstr("job list: there is no option \"--real\"\n"));
  EXPECT_THAT(refusal({"splt"}), HasSubstr("job: there is no command \"splt\"\n"));
}

TEST(Components, Help_ListsWhatIsLinked) {
  const auto all = help("job", nullptr);
  EXPECT_THAT(all, HasSubstr("\n  merge "));
  EXPECT_THAT(all, Not(HasSubstr("\n  split ")));
  EXPECT_THAT(all, Not(HasSubstr("\n  validate ")));
  const auto run = help("job", find_command("run"));
  EXPECT_THAT(run, HasSubstr("\n  --swarm "));
  EXPECT_THAT(run, Not(HasSubstr("--real")));
  EXPECT_THAT(run, Not(HasSubstr("--with")));
}

TEST(Components, Completion_OffersWhatIsLinked) {
  const auto commands = offers({""});
  EXPECT_THAT(commands, HasSubstr("merge\t"));
  EXPECT_THAT(commands, Not(HasSubstr("split\t")));
  EXPECT_THAT(commands, Not(HasSubstr("validate\t")));
  const auto options = offers({"run", "--"});
  EXPECT_THAT(options, HasSubstr("--swarm\t"));
  EXPECT_THAT(options, Not(HasSubstr("--with")));
}

TEST(Components, EachOfferedCommand_HasItsFunction) {
  for (const auto& command : grammar()) EXPECT_NE(command.function, nullptr) << command.name;
}

TEST(Components, RealRun_NamesTheComponent) {
  ASSERT_FALSE(has_real_runner());
  try {
    make_real_runner();
    FAIL() << "there is a runner";
  } catch (const RunnerUnavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("this run needs the real mode, which is not part of this program: link "
                                        "rehearse::real (find_package(rehearse COMPONENTS main real)"));
  }
}

}  // namespace
}  // namespace rehearse::cli
