// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/job/program.h>
#include <rehearse_internal/sim/scenario.h>

// Contract: for any wrong value of a key, an error has the line, the key, the value (on one line) and what would be
// right. For an unknown key, it has the line, the key and the keys that exist.

REHEARSE_PROGRAM(mistaken){.summary = "for these tests",
                           .parameters = {{"steps", std::int64_t{20}, "training steps", 1, 1000},
                                          {"rate", 0.5, "learning rate"},
                                          {"data", std::string("built in"), "what to train on"},
                                          {"shuffle", true, "in another order each epoch"}},
                           .body = [](rehearse::RankContext&, const rehearse::Parameters&) {}};

namespace rehearse::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> all_problems_of(const std::string& text) {
  try {
    parse_scenario("program = \"mistaken\"\n" + text, "lm.toml");
  } catch (const ScenarioError& error) {
    return error.problems();
  }
  return {};
}

// A value as written, and as an error shows it.
struct Value {
  std::string written, shown;
};

const Value kAnArray{"[1]", "an array"}, kATable{"{a = 1}", "a table"}, kADate{"1979-05-27", "a date or time"};
const char* const kSchedules =
    "\"random\" or \"round_robin\" or \"pct\" or \"pos\" or \"deviations\" or \"in_order\" or \"reverse\"";
const Value kWords{"\"eight\"", "\"eight\""}, kNothing{"\"\"", "\"\""}, kTrue{"true", "true"};
const Value kZero{"0", "0"}, kMinus{"-3", "-3"}, kHuge{"9223372036854775807", "9223372036854775807"};
const Value kHalf{"0.5", "0.5"}, kFour{"4.0", "4.0"}, kNan{"nan", "nan"}, kInfinite{"inf", "inf"};
const Value kLines{"\"a\\nb\\u001b[31m\"", "\"a\\nb\\u001b[31m\""};

struct Key {
  const char* section;
  const char* name;
  std::string takes;
  std::vector<Value> wrong;
};

const Key kKeys[] = {
    {"world",
     "ranks",
     "an integer from 1 to 65536",
     {kZero, kMinus, kHuge, {"65537", "65537"}, kFour, kHalf, kNan, kInfinite, kWords, kTrue}},
    {"world",
     "seed",
     "an integer from 0 to 2^64 - 1, or one in a text, as in \"0x8f3a\"",
     {kMinus, kHalf, kNan, kWords, kNothing, kTrue, {"\"18446744073709551616\"", "\"18446744073709551616\""}}},
    {"world", "schedule", kSchedules, {kWords, kNothing, kLines, kZero, kTrue}},
    {"world", "pct_depth", "an integer from 1 to 64", {kZero, kMinus, {"65", "65"}, kHalf, kWords, kTrue}},
    {"world", "pct_steps", "an integer from 1 to 9223372036854775807", {kZero, kMinus, kHalf, kWords, kTrue}},
    {"world", "memory", "a size above 0, as in \"80GiB\"", {kZero, kWords, kNothing, kTrue, {"\"0B\"", "\"0B\""}}},
    {"swarm", "faults_most", "an integer from 1 to 1000", {kZero, kMinus, {"1001", "1001"}, kHalf, kWords}},
    {"swarm", "calls", "an integer from 1 to 1000000", {kZero, kMinus, {"1000001", "1000001"}, kHalf, kWords}},
    {"swarm",
     "within",
     "a duration in ns, us, ms, s, min or h, as in \"10ms\"",
     {kZero, kWords, kNothing, {"\"5\"", "\"5\""}, {"\"-5us\"", "\"-5us\""}}},
    {"swarm", "on", "true or false", {kZero, kWords}},
    {"world",
     "timeout",
     "a duration of whole milliseconds, as in \"30min\", or \"0s\" for none",
     {kZero,
      kMinus,
      kWords,
      kNothing,
      {"\"0\"", "\"0\""},
      {"\"-5s\"", "\"-5s\""},
      {"\"1us\"", "\"1us\""},
      {"\"9999999999h\"", "\"9999999999h\""},
      {"\"1e400s\"", "\"1e400s\""},
      {"\"nans\"", "\"nans\""}}},
    {"world", "preempt", "true or false", {kZero, kWords, kNothing, {"\"true\"", "\"true\""}}},
    {"world", "buffered_sends", "true or false", {kZero, kWords, kNothing, {"\"true\"", "\"true\""}}},
    {"world", "coalesced_as_one", "true or false", {kZero, kWords, kNothing, {"\"true\"", "\"true\""}}},
    {"world",
     "stack",
     "a size from 64KiB to 16GiB, as in \"8MiB\"",
     {kZero,
      kHuge,
      kWords,
      {"\"0B\"", "\"0B\""},
      {"\"63KiB\"", "\"63KiB\""},
      {"\"17GiB\"", "\"17GiB\""},
      {"\"8mib\"", "\"8mib\""},
      {"\"-8MiB\"", "\"-8MiB\""}}},
    {"world", "steps_max", "an integer from 1 to 9223372036854775807", {kZero, kMinus, kHalf, kWords}},
    {"network",
     "latency",
     "a duration in ns, us, ms, s, min or h, as in \"5us\"",
     {kZero,
      kMinus,
      kWords,
      {"\"5\"", "\"5\""},
      {"\"5sec\"", "\"5sec\""},
      {"\"0.5ns\"", "\"0.5ns\""},
      {"\"5µs\"", "\"5µs\""},
      {"\"-5us\"", "\"-5us\""}}},
    {"network",
     "bandwidth",
     "a bandwidth, as in \"50GB/s\" or \"400Gbit/s\"",
     {kZero,
      kHuge,
      kWords,
      {"\"0GB/s\"", "\"0GB/s\""},
      {"\"400Gbps\"", "\"400Gbps\""},
      {"\"infGB/s\"", "\"infGB/s\""}}},
    {"network", "jitter", "a number from 0 to 100", {kMinus, {"101", "101"}, kNan, kInfinite, kWords, kTrue}},
    {"compute",
     "flops",
     "operations a second, as in \"20TFLOP/s\"",
     {kZero, kHuge, kWords, {"\"0TFLOP/s\"", "\"0TFLOP/s\""}, {"\"20TFLOPS\"", "\"20TFLOPS\""}}},
    {"compute", "bandwidth", "a bandwidth, as in \"2TB/s\"", {kZero, kWords, {"\"2TB\"", "\"2TB\""}}},
    {"compute",
     "per_operator",
     "a duration in ns, us, ms, s, min or h, as in \"5us\"",
     {kZero, kMinus, kWords, {"\"-5us\"", "\"-5us\""}}},
    {"compile",
     "per_node",
     "a duration in ns, us, ms, s, min or h, as in \"2ms\"",
     {kZero, kMinus, kWords, {"\"-5us\"", "\"-5us\""}}},
    {"compile", "jitter", "a number from 0 to 100", {kMinus, {"101", "101"}, kNan, kInfinite, kWords, kTrue}},
    {"compile", "divergence", "\"remark\" or \"fail\"", {kWords, kNothing, kZero, kTrue}},
    {"parameters", "steps", "an integer from 1 to 1000", {kZero, kMinus, kHuge, kFour, kNan, kWords, kLines, kTrue}},
    {"parameters", "rate", "a number", {kWords, kNothing, kTrue}},
    {"parameters", "data", "a text", {kZero, kHalf, kTrue}},
    {"parameters", "shuffle", "true or false", {kZero, kWords, kFour}},
    {"output", "directory", "a text that is not empty", {kNothing, kZero, kTrue}},
    {"output", "report", "true or false", {kZero, kWords}},
    {"output", "json", "true or false", {kZero, kWords}},
    {"output", "trace", "true or false", {kZero, kWords}},
    {"output", "flight_recorder", "true or false", {kZero, kWords}},
};

TEST(ScenarioMistakes, EveryKey_SaysWhatItWasGivenAndWhatItTakes) {
  for (const auto& key : kKeys) {
    auto wrong = key.wrong;
    wrong.insert(wrong.end(), {kAnArray, kATable, kADate});
    for (const auto& value : wrong) {
      const bool parameter = std::string(key.section) == "parameters";
      const auto name =
          parameter ? "parameter \"" + std::string(key.name) + "\"" : "[" + std::string(key.section) + "] " + key.name;
      EXPECT_THAT(all_problems_of("[" + std::string(key.section) + "]\n" + key.name + " = " + value.written + "\n"),
                  ElementsAre("lm.toml:3: " + name + " is " + value.shown + "; it takes " + key.takes));
    }
  }
}

TEST(ScenarioMistakes, KeyWithAWrongLetter_IsGuessed) {
  for (const auto& key : kKeys) {
    const std::string wrong = std::string(key.name) + "s";
    const auto problems = all_problems_of("[" + std::string(key.section) + "]\n" + wrong + " = 1\n");
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_THAT(problems[0], StartsWith("lm.toml:3: there is no "));
    EXPECT_THAT(problems[0], HasSubstr("\"" + wrong + "\""));
    EXPECT_THAT(problems[0], HasSubstr(" (did you mean \"" + std::string(key.name) + "\"?); "));
  }
}

TEST(ScenarioMistakes, KeyInTheWrongSection_NamesItsSection) {
  EXPECT_THAT(all_problems_of("ranks = 3\n"),
              ElementsAre("lm.toml:2: there is no key \"ranks\" at the top level (ranks goes into [world]); it has "
                          "program, executable, arguments, mode, with, expect, world, network, compute, compile, "
                          "checks, fault, swarm, parameters, output"));
  EXPECT_THAT(
      all_problems_of("[world]\nlatency = \"5us\"\nsteps = 3\n"),
      ElementsAre(StartsWith("lm.toml:3: there is no key \"latency\" in [world] (latency goes into [network]); "),
                  StartsWith("lm.toml:4: there is no key \"steps\" in [world] (steps goes into [parameters]); ")));
  EXPECT_THAT(all_problems_of("[parameters]\nranks = 3\n"),
              ElementsAre("lm.toml:3: there is no parameter \"ranks\"; the program takes data, rate, shuffle, steps "
                          "(ranks goes into [world])"));
}

TEST(ScenarioMistakes, KeyOrSectionTwice_IsRefused) {
  EXPECT_THAT(all_problems_of("[world]\nranks = 2\nranks = 3\n"),
              ElementsAre(AllOf(StartsWith("lm.toml:4:"), HasSubstr("not TOML: "),
                                HasSubstr("cannot redefine existing integer 'ranks'"))));
  EXPECT_THAT(all_problems_of("[world]\n[network]\n[world]\n"),
              ElementsAre(AllOf(StartsWith("lm.toml:4:"), HasSubstr("cannot redefine existing table 'world'"))));
  EXPECT_THAT(all_problems_of("[[world]]\nranks = 2\n"), ElementsAre("lm.toml:2: world is an array; it takes a table"));
}

TEST(ScenarioMistakes, NumberBeyond64Bits_IsRefused) {
  EXPECT_THAT(all_problems_of("[world]\nranks = 99999999999999999999\n"),
              ElementsAre(AllOf(StartsWith("lm.toml:3:"),
                                HasSubstr("'99999999999999999999' is not representable in 64 bits; a seed above "
                                          "2^63 - 1 is given as a text, in quotes"))));
}

TEST(ScenarioMistakes, KeyOfThousandsOfParts_IsRefused) {
  std::string key = "a";
  for (int i = 0; i < 50'000; ++i) key += ".a";
  const std::string why =
      "not TOML that is read here: a key of 50001 parts; a key of a scenario has one, under [world], "
      "[network], [compute], [compile], [checks], [[fault]], [swarm], [parameters] or [output]";
  EXPECT_THAT(all_problems_of(key + " = 1\n"), ElementsAre("lm.toml:2: " + why));
  EXPECT_THAT(all_problems_of("\n[" + key + "]\n"), ElementsAre("lm.toml:3: " + why));
}

// A terminal must not receive control characters from a file, and C functions end a path at a zero.
TEST(ScenarioMistakes, ControlCharacters_AreRefusedAndShownAsEscapes) {
  EXPECT_THAT(all_problems_of("[output]\ndirectory = \"a\\u0000b\"\n"),
              ElementsAre("lm.toml:3: [output] directory is \"a\\u0000b\"; it takes a text without line ends and other "
                          "control characters"));
  EXPECT_THAT(all_problems_of("[world]\n\"ra\\nks\" = 3\n"),
              ElementsAre(HasSubstr("there is no key \"ra\\nks\" in [world]")));
  EXPECT_THAT(all_problems_of("[parameters]\n\"st\\teps\" = 3\n"),
              ElementsAre(HasSubstr("there is no parameter \"st\\teps\"")));
}

TEST(ScenarioMistakes, LongValue_IsShortened) {
  const std::string long_text(100'000, 'r'), shown = "\"" + std::string(80, 'r') + "...\"";
  EXPECT_THAT(all_problems_of("[world]\nschedule = \"" + long_text + "\"\n"),
              ElementsAre("lm.toml:3: [world] schedule is " + shown + "; it takes " + kSchedules));
  EXPECT_THAT(all_problems_of("[world]\n" + long_text + " = 1\n"), ElementsAre(HasSubstr("there is no key " + shown)));
  // The cut must not split a letter.
  std::string umlauts = "a";
  for (int i = 0; i < 100; ++i) umlauts += "ü";
  EXPECT_THAT(all_problems_of("[world]\nschedule = \"" + umlauts + "\"\n"),
              ElementsAre(HasSubstr(" is \"" + umlauts.substr(0, 79) + "...\"")));
}

}  // namespace
}  // namespace rehearse::sim
