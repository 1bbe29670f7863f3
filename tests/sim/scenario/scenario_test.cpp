// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/scenario.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/job/program.h>

// Contract: a key that a scenario leaves out has its default. All errors come at once, each with its line, its value
// and what would be right. A printed scenario reads back as the same scenario.

REHEARSE_PROGRAM(scenario_train){.summary = "for these tests",
                                 .parameters = {{"steps", std::int64_t{20}, "training steps", 1, 1000},
                                                {"rate", 0.5, "learning rate"},
                                                {"data", std::string("built in"), "what to train on"},
                                                {"shuffle", true, "in another order each epoch"}},
                                 .body = [](rehearse::RankContext&, const rehearse::Parameters&) {}};

REHEARSE_PROGRAM(scenario_plain){.summary = "takes nothing",
                                 .body = [](rehearse::RankContext&, const rehearse::Parameters&) {}};

namespace rehearse::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> problems_of(std::string_view text) {
  try {
    parse_scenario(text, "lm.toml");
  } catch (const ScenarioError& error) {
    return error.problems();
  }
  return {};
}

constexpr std::string_view kEverything = R"(program = "scenario_train"
executable = "trainer"
[world]
ranks = 8
seed = "0xf00d000000000001"
schedule = "round_robin"
pct_depth = 4
pct_steps = 200
timeout = "90s"
buffered_sends = true
coalesced_as_one = true
memory = "80GiB"
stack = "1MiB"
steps_max = 1000
[network]
latency = "1.5us"
bandwidth = "400Gbit/s"
jitter = 0.25
[compute]
flops = "20TFLOP/s"
bandwidth = "2TB/s"
per_operator = "5us"
[compile]
per_node = "2ms"
jitter = 0.5
divergence = "fail"
[swarm]
families = ["crash peers=disconnect", "slow factor=2"]
on = true
faults_most = 3
calls = 50
within = "10ms"
[checks]
level = "all"
replicas = true
draws = "different"
finite = true
[parameters]
steps = 7
rate = 2
data = "a \"quoted\" \\ text\n"
shuffle = false
[output]
directory = "out/here"
report = false
json = false
html = false
trace = false
flight_recorder = false
)";

TEST(Scenario, OnlyTheProgram_DefaultsHold) {
  const auto scenario = parse_scenario("program = \"scenario_plain\"", "some/where/lm.toml");
  EXPECT_EQ(scenario.program, "scenario_plain");
  EXPECT_EQ(scenario.executable, "");
  EXPECT_EQ(scenario.world.ranks, 2);
  EXPECT_EQ(scenario.world.seed, 1u);
  EXPECT_EQ(scenario.world.schedule, std::nullopt);
  EXPECT_EQ(scenario.world.timeout, std::chrono::minutes(30));
  EXPECT_FALSE(scenario.world.compute.on());
  EXPECT_FALSE(scenario.world.checks.any());
  EXPECT_EQ(scenario.output.directory, "rehearse-out/lm");
  for (const auto* file : {"report", "json", "html", "trace", "flight_recorder"}) {
    EXPECT_TRUE(scenario.output.wants(file)) << file;
    EXPECT_FALSE(scenario.output.names(file)) << file;
  }
}

TEST(Scenario, Everything_IsRead) {
  const auto scenario = parse_scenario(kEverything, "lm.toml");
  EXPECT_EQ(scenario.executable, "trainer");
  EXPECT_EQ(scenario.world.ranks, 8);
  EXPECT_EQ(scenario.world.seed, 0xf00d000000000001u);
  EXPECT_EQ(scenario.world.schedule, Schedule::round_robin);
  EXPECT_EQ(scenario.world.pct.depth, 4);
  EXPECT_EQ(scenario.world.pct.steps, 200u);
  ASSERT_EQ(scenario.world.swarm.families.size(), 2u);
  EXPECT_EQ(to_string(scenario.world.swarm.families[0]), "crash peers=disconnect");
  EXPECT_TRUE(scenario.world.swarm.on);
  EXPECT_EQ(scenario.world.swarm.faults_most, 3);
  EXPECT_EQ(scenario.world.swarm.calls, 50u);
  EXPECT_EQ(scenario.world.swarm.within, std::chrono::milliseconds(10));
  EXPECT_EQ(scenario.world.timeout, std::chrono::seconds(90));
  EXPECT_TRUE(scenario.world.buffered_sends);
  EXPECT_TRUE(scenario.world.coalesced_as_one);
  EXPECT_EQ(scenario.world.memory_bytes, std::uint64_t{80} << 30);
  EXPECT_EQ(scenario.world.stack_bytes, std::size_t{1} << 20);
  EXPECT_EQ(scenario.world.steps_max, 1000u);
  EXPECT_EQ(scenario.world.network.latency, std::chrono::nanoseconds(1500));
  EXPECT_EQ(scenario.world.network.bytes_per_second, 50e9);
  EXPECT_EQ(scenario.world.network.jitter, 0.25);
  EXPECT_EQ(scenario.world.compute.flops_per_second, 20e12);
  EXPECT_EQ(scenario.world.compute.bytes_per_second, 2e12);
  EXPECT_EQ(scenario.world.compute.per_operator, std::chrono::microseconds(5));
  EXPECT_EQ(scenario.world.compile_time.per_node, std::chrono::milliseconds(2));
  EXPECT_EQ(scenario.world.compile_time.jitter, 0.5);
  EXPECT_EQ(scenario.world.compile_divergence, CompileDivergence::fail);
  EXPECT_TRUE(scenario.world.checks.replicas);
  EXPECT_EQ(scenario.world.checks.draws, checks::Draws::different);
  EXPECT_TRUE(scenario.world.checks.finite);
  EXPECT_EQ(scenario.parameters.integer("steps"), 7);
  EXPECT_EQ(scenario.parameters.number("rate"), 2.0);
  EXPECT_EQ(scenario.parameters.text("data"), "a \"quoted\" \\ text\n");
  EXPECT_FALSE(scenario.parameters.flag("shuffle"));
  EXPECT_EQ(scenario.output.directory, "out/here");
  for (const auto* file : {"report", "json", "html", "trace", "flight_recorder"}) {
    EXPECT_FALSE(scenario.output.wants(file)) << file;
  }
}

TEST(Scenario, Printed_ParsesToTheSame) {
  for (const auto text : {kEverything, std::string_view("program = \"scenario_plain\"")}) {
    const auto once = to_toml(parse_scenario(text, "lm.toml"));
    const auto twice = to_toml(parse_scenario(once, "other.toml"));
    EXPECT_EQ(once, twice);
  }
}

// A long text prints whole, unlike in errors. Line ends print as in errors.
TEST(Scenario, PrintedText_IsSpelledAsInErrors) {
  const std::string text = "a\n\"b\"\t\\ \x1b " + std::string(100, 'x');
  Scenario scenario = parse_scenario("program = \"scenario_train\"", "lm.toml");
  scenario.executable = text;
  EXPECT_THAT(to_toml(scenario),
              ::testing::HasSubstr("\nexecutable = \"a\\n\\\"b\\\"\\t\\\\ \\u001b " + std::string(100, 'x') + "\"\n"));
}

TEST(Scenario, Printed_ReadsWell) {
  EXPECT_EQ(to_toml(parse_scenario("program = \"scenario_train\"", "lm.toml")), R"(program = "scenario_train"

[world]
ranks = 2
seed = 1
timeout = "30min"
buffered_sends = false
coalesced_as_one = false
stack = "8MiB"
steps_max = 1000000000

[network]
latency = "5us"
bandwidth = "50GB/s"
jitter = 0.0
store = "0ns"

[parameters]
"data" = "built in"
"rate" = 0.5
"shuffle" = true
"steps" = 20

[output]
directory = "rehearse-out/lm"
report = true
json = true
html = true
trace = true
flight_recorder = true
)");
}

// Reads faults from tables whose values are numbers, texts and arrays. In the printed tables, all these values are
// texts.
TEST(Scenario, Faults_AreReadAndPrinted) {
  const auto scenario = parse_scenario(R"(program = "scenario_train"
expect = "RANK FAILED"
[[fault]]
do = "crash"
rank = [0, 2, 3]
at = "allreduce#12"
optional = true
[[fault]]
do = "pause"
rank = 1
label = "layer 1"
for = "5ms"
p = 0.5
times = 3
[[fault]]
do = "exit"
rank = 3
at = "#4"
restart = "5ms"
)",
                                       "lm.toml");
  EXPECT_EQ(scenario.expect, Verdict::rank_failed);
  ASSERT_EQ(scenario.world.faults.size(), 3u);
  EXPECT_EQ(rehearse::to_string(scenario.world.faults[0]), "crash rank=0,2-3 at=allreduce#12 optional=true");
  EXPECT_EQ(rehearse::to_string(scenario.world.faults[1]), "pause rank=1 label=\"layer 1\" p=0.5 for=5ms times=3");
  EXPECT_EQ(rehearse::to_string(scenario.world.faults[2]), "exit rank=3 at=#4 restart=5ms");
  const auto text = to_toml(scenario);
  EXPECT_THAT(text, HasSubstr("[[fault]]\ndo = \"crash\"\nrank = \"0,2-3\"\nat = \"allreduce#12\"\n"));
  const auto again = parse_scenario(text, "lm.toml");
  EXPECT_EQ(again.world.faults, scenario.world.faults);
  EXPECT_EQ(again.expect, scenario.expect);
}

TEST(Scenario, MistakesInFaults_NameLineFieldAndRemedy) {
  EXPECT_THAT(problems_of("program = \"scenario_train\"\nfault = 3\n"),
              ElementsAre("lm.toml:2: fault is 3; it takes tables, each under [[fault]]"));
  EXPECT_THAT(problems_of("program = \"scenario_train\"\n[[fault]]\nrank = 3\n[[fault]]\ndo = \"hang\"\n"
                          "at = \"#1\"\nrank = 1.5\n[[fault]]\ndo = \"hang\"\nafter = 2020-01-01\n"),
              ElementsAre("lm.toml:2: [[fault]] there is no key \"do\": it says what happens, as in do = \"crash\"",
                          "lm.toml:4: [[fault]] rank is \"1.5\"; it takes ranks, as in 3, 0,2 or 1-3, or all",
                          StartsWith("lm.toml:10: [[fault]] after is ")));
}

TEST(Scenario, ManyMistakes_AreAllReported) {
  EXPECT_THAT(
      problems_of(R"(program = "scenario_train"
sead = 3
[world]
ranks = "eight"
seed = -1
schedule = "fair"
timeout = "1.5ms"
buffered_sends = 1
stack = 8
steps_max = 0
rank = 3
[network]
latency = "5"
bandwidth = "fast"
jitter = -0.5
[parameters]
steps = 0
rate = "high"
stepz = 4
data = [1, 2]
[output]
directory = ""
trace = "yes"
)"),
      ElementsAre(
          "lm.toml:2: there is no key \"sead\" at the top level; it has program, executable, arguments, mode, with, "
          "expect, world, network, "
          "compute, compile, checks, "
          "fault, swarm, parameters, output",
          "lm.toml:4: [world] ranks is \"eight\"; it takes an integer from 1 to 65536",
          "lm.toml:5: [world] seed is -1; it takes an integer from 0 to 2^64 - 1, or one in a text, as in "
          "\"0x8f3a\"",
          "lm.toml:6: [world] schedule is \"fair\"; it takes \"random\" or \"round_robin\" or \"pct\" or \"pos\" or "
          "\"deviations\" or \"in_order\" or \"reverse\"",
          "lm.toml:7: [world] timeout is \"1.5ms\"; it takes a duration of whole milliseconds, as in "
          "\"30min\", or \"0s\" for none",
          "lm.toml:8: [world] buffered_sends is 1; it takes true or false",
          "lm.toml:9: [world] stack is 8; it takes a size from 64KiB to 16GiB, as in \"8MiB\"",
          "lm.toml:10: [world] steps_max is 0; it takes an integer from 1 to 9223372036854775807",
          "lm.toml:11: there is no key \"rank\" in [world] (did you mean \"ranks\"?); it has ranks, seed, "
          "schedule, pct_depth, pct_steps, preempt, patience, file_time, timeout, date, buffered_sends, "
          "coalesced_as_one, "
          "memory, "
          "stack, "
          "steps_max",
          "lm.toml:13: [network] latency is \"5\"; it takes a duration in ns, us, ms, s, min or h, as in "
          "\"5us\"",
          "lm.toml:14: [network] bandwidth is \"fast\"; it takes a bandwidth, as in \"50GB/s\" or "
          "\"400Gbit/s\"",
          "lm.toml:15: [network] jitter is -0.5; it takes a number from 0 to 100",
          "lm.toml:17: parameter \"steps\" is 0; it takes an integer from 1 to 1000",
          "lm.toml:18: parameter \"rate\" is \"high\"; it takes a number",
          "lm.toml:19: there is no parameter \"stepz\" (did you mean \"steps\"?); the program takes data, "
          "rate, "
          "shuffle, steps",
          "lm.toml:20: parameter \"data\" is an array; it takes a text",
          "lm.toml:22: [output] directory is \"\"; it takes a text that is not empty",
          "lm.toml:23: [output] trace is \"yes\"; it takes true or false"));
}

TEST(Scenario, NoProgram_SaysHowToNameOne) {
  EXPECT_THAT(problems_of("[world]\nranks = 4\n"),
              ElementsAre("lm.toml: there is no key \"program\": it names what to run, as in program = \"lm_ddp\""));
  EXPECT_THAT(problems_of("program = 3"), ElementsAre("lm.toml:1: program is 3; it takes a text that is not empty"));
}

TEST(Scenario, UnknownProgram_SaysWhatThereIs) {
  EXPECT_THAT(problems_of("program = \"scenario_trian\""),
              ElementsAre("lm.toml:1: program \"scenario_trian\" is not in this executable (did you mean "
                          "\"scenario_train\"?); it has filed, mistaken, scenario_plain, scenario_train. Run "
                          "the scenario with the "
                          "executable whose source says REHEARSE_PROGRAM(scenario_trian)"));
  EXPECT_THAT(problems_of("program = \"other\"\nexecutable = \"bin/other_job\""),
              ElementsAre("lm.toml:1: program \"other\" is not in this executable; it is in \"bin/other_job\": run the "
                          "scenario with that one"));
}

TEST(Scenario, ParametersOfAProgramWithout_AreRefused) {
  EXPECT_THAT(problems_of("program = \"scenario_plain\"\n[parameters]\nsteps = 1\n"),
              ElementsAre("lm.toml:3: there is no parameter \"steps\"; the program takes none"));
}

TEST(Scenario, ValueWhereATableBelongs_IsRefused) {
  EXPECT_THAT(problems_of("program = \"scenario_plain\"\nworld = 3\n"),
              ElementsAre("lm.toml:2: world is 3; it takes a table"));
}

TEST(Scenario, NotToml_SaysWhere) {
  const auto problems = problems_of("program = \"scenario_plain\"\n[world\nranks = 2\n");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], ::testing::StartsWith("lm.toml:2:"));
  EXPECT_THAT(problems[0], ::testing::HasSubstr("not TOML: "));
}

TEST(Scenario, PathsInParameters_AreRelativeToTheFile) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "scenario_paths";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "lm.toml") << "program = \"scenario_train\"\n[parameters]\ndata = \"./text.bin\"\n";
  EXPECT_EQ(read_scenario(folder / "lm.toml").parameters.text("data"), (folder / "text.bin").string());
  EXPECT_EQ(parse_scenario("program = \"scenario_train\"\n[parameters]\ndata = \"../text.bin\"", "lm.toml", "a/b")
                .parameters.text("data"),
            "a/text.bin");
  EXPECT_EQ(parse_scenario("program = \"scenario_train\"\n[parameters]\ndata = \"..\"", "lm.toml", "a/b")
                .parameters.text("data"),
            "a/");
  EXPECT_EQ(parse_scenario("program = \"scenario_train\"\n[parameters]\ndata = \"text.bin\"", "lm.toml", "a/b")
                .parameters.text("data"),
            "text.bin");
}

TEST(Scenario, FileThatCannotBeRead_SaysWhy) {
  try {
    read_scenario("there/is/no.toml");
    FAIL() << "read_scenario() did not throw";
  } catch (const ScenarioError& error) {
    EXPECT_STREQ(error.what(), "there/is/no.toml: cannot be read: No such file or directory");
  }
}

}  // namespace
}  // namespace rehearse::sim
