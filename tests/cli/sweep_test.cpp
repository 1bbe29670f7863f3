// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <regex>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"

// Contract: the output of a sweep does not depend on the number of workers. A sweep that stops early reports the lowest
// seeds that fail. It lists seeds that fail by the same bug as one bug. If a worker dies, only its seed fails. The last
// line of the output replays the first failure.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class Sweep : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& more = "") const {
    write_file(folder_ / (program + ".toml"), "program = \"" + program + "\"\n[world]\nranks = 4\n" + more);
  }

  // If a sanitizer handled SIGSEGV, it would end the process before our handler reports.
  Finished job(const std::vector<std::string>& arguments) const {
    return run_process(CLI_JOB, arguments, folder_, {"ASAN_OPTIONS=handle_segv=0"});
  }

  Finished sweep(const std::string& program, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"sweep", program + ".toml", "--quiet"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return job(arguments);
  }

  // Runs the last line as a shell would. The line has no quotes.
  Finished replay(const std::string& output) const {
    const auto line = output.substr(output.rfind("replay: job ") + 12);
    const auto space = line.find(' ');
    return job({line.substr(0, space), line.substr(space + 1, line.find('\n') - space - 1), "--quiet"});
  }

  std::set<std::string> seed_folders(const std::string& program) const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "rehearse-out" / program)) {
      if (!entry.is_directory()) continue;  // skip the sweep's own page
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Sweep, GoodProgram_IsOk) {
  scenario("sum");
  const auto finished = job({"sweep", "sum.toml", "--seeds=1..20", "--jobs=2"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out,
            "rehearse 0.1.0 program=sum seeds=1..20 schedule=mix of 9 steps=15/15 ranks=4 jobs=2\n"
            "OK: 20 seeds of sum found nothing (20 different runs)\n");
  EXPECT_EQ(seed_folders("sum"), std::set<std::string>{});
}

TEST_F(Sweep, FirstFailure_StopsIt) {
  scenario("races");
  const auto one = sweep("races", {"--seeds=1..100", "--jobs=1"});
  EXPECT_THAT(one.exit_code, ::testing::AnyOf(1, 3));
  EXPECT_EQ(one.err, "");
  EXPECT_THAT(one.out, StartsWith("FAILED: 1 of "));
  EXPECT_EQ(seed_folders("races").size(), 1u);
  const auto again = replay(one.out);
  EXPECT_EQ(again.exit_code, one.exit_code);
  for (const char* jobs : {"--jobs=2", "--jobs=5"}) {
    const auto more = sweep("races", {"--seeds=1..100", jobs});
    EXPECT_EQ(more.out, one.out);
    EXPECT_EQ(more.exit_code, one.exit_code);
    EXPECT_EQ(seed_folders("races").size(), 1u);
  }
}

TEST_F(Sweep, KeepGoing_CountsBugs) {
  scenario("races");
  const auto finished = sweep("races", {"--seeds=1..60", "--jobs=3", "--keep-going", "--json"});
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["ran"], 60);
  EXPECT_EQ(json["stopped"], false);
  ASSERT_EQ(json["bugs"].size(), 2u) << finished.out;
  std::set<std::string> verdicts, folders;
  std::uint64_t failures = 0;
  for (const auto& bug : json["bugs"]) {
    verdicts.insert(bug["verdict"].get<std::string>());
    failures += bug["seeds"].size();
    EXPECT_EQ(
        bug["first_report"]["seed"], "0x" + [&] {
          std::ostringstream text;
          text << std::hex << bug["seeds"][0].get<std::uint64_t>();
          return text.str();
        }());
    for (const auto& seed : bug["seeds"]) folders.insert("seed-" + std::to_string(seed.get<std::uint64_t>()));
  }
  EXPECT_EQ(verdicts, (std::set<std::string>{"DEADLOCK", "RANK FAILED"}));
  EXPECT_EQ(folders.size(), failures);
  EXPECT_EQ(failures, 27u);
  EXPECT_EQ(seed_folders("races"), folders);
  EXPECT_EQ(sweep("races", {"--seeds=1..60", "--jobs=1", "--keep-going", "--json"}).out, finished.out);

  const auto text = sweep("races", {"--seeds=1..60", "--keep-going"});
  EXPECT_THAT(text.out, StartsWith("FAILED: " + std::to_string(failures) + " of 60 seeds ("));
  EXPECT_THAT(text.out, HasSubstr(", 2 bugs\n1. "));
  EXPECT_THAT(text.out, HasSubstr("\n2. "));
  EXPECT_EQ(replay(text.out).exit_code, text.exit_code);
}

// How such a program fails is a matter of chance, so its failures are one bug.
TEST_F(Sweep, FailuresThatDoNotRepeat_AreOneBug) {
  scenario("moody", "[parameters]\nfails = true\n");
  const auto finished = sweep("moody", {"--seeds=1..8", "--keep-going"});
  EXPECT_THAT(finished.out.substr(0, finished.out.find('\n')),
              MatchesRegex("FAILED: 8 of 8 seeds \\([2-8] different runs\\), 1 bug"));
  EXPECT_THAT(finished.out, HasSubstr("\n     the program uses something outside of the seed; --check-determinism"));
}

TEST_F(Sweep, MaxFailures_AreTheLowestSeeds) {
  scenario("races");
  const auto all = nlohmann::json::parse(sweep("races", {"--seeds=1..60", "--keep-going", "--json"}).out);
  std::set<std::uint64_t> lowest;
  for (const auto& bug : all["bugs"]) {
    for (const auto& seed : bug["seeds"]) lowest.insert(seed.get<std::uint64_t>());
  }
  lowest.erase(std::next(lowest.begin(), 3), lowest.end());
  const auto three = sweep("races", {"--seeds=1..60", "--max-failures=3", "--jobs=4", "--json"});
  const auto json = nlohmann::json::parse(three.out);
  std::set<std::uint64_t> found;
  for (const auto& bug : json["bugs"]) {
    for (const auto& seed : bug["seeds"]) found.insert(seed.get<std::uint64_t>());
  }
  EXPECT_EQ(found, lowest);
  EXPECT_EQ(json["stopped"], true);
  EXPECT_EQ(json["ran"], *lowest.rbegin());
  EXPECT_EQ(seed_folders("races").size(), 3u);
}

TEST_F(Sweep, WorkerThatDies_IsAFailingSeed) {
  scenario("races", "[parameters]\nmay_die = true\n");
  const auto finished = sweep("races", {"--seeds=1..40", "--jobs=2", "--keep-going"});
  EXPECT_THAT(finished.out, HasSubstr("FAILED: "));
  EXPECT_THAT(finished.out, HasSubstr(" of 40 seeds ("));
  EXPECT_THAT(finished.out, HasSubstr(", 3 bugs\n"));
  EXPECT_THAT(
      finished.out,
      HasSubstr(": rank 3 ended the process by SIGSEGV (Segmentation fault); its last words: something is null\n"
                "     SIGSEGV (Segmentation fault)  at job.cpp:"));
  // The log in the seed's folder reproduces the death.
  std::smatch match;
  ASSERT_TRUE(std::regex_search(finished.out, match, std::regex("CRASHED, seeds? ([0-9]+)")));
  const std::string seed = match[1];
  EXPECT_EQ(read_file(folder_ / "rehearse-out/races" / ("seed-" + seed) / "output.txt"), "something is null\n");
  const auto again = job({"replay", "rehearse-out/races/seed-" + seed + "/run.rlog"});
  EXPECT_EQ(again.exit_code, 9);
  EXPECT_THAT(again.out, HasSubstr("\nCRASHED: rank 3 ended the process by SIGSEGV (Segmentation fault)\nrank 3: "));
  const auto alone = sweep("races", {"--seeds=" + seed});
  EXPECT_EQ(alone.exit_code, 9);
  EXPECT_THAT(alone.out, HasSubstr("\nCRASHED: rank 3 ended the process by SIGSEGV"));
  // The worker died, so its counts of operations are unknown.
  EXPECT_THAT(alone.out, testing::ContainsRegex(" schedule=[a-z_0-9:+]+\nfiles: "));
}

TEST_F(Sweep, Junit_HasACaseForEachSeed) {
  scenario("races", "[parameters]\nmay_die = true\n");
  const auto finished = sweep("races", {"--seeds=1..40", "--keep-going", "--junit=out.xml"});
  const auto xml = read_file(folder_ / "out.xml");
  EXPECT_THAT(xml, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"40\" failures=\""));
  for (int seed = 1; seed <= 40; ++seed) {
    EXPECT_THAT(xml, HasSubstr("<testcase classname=\"races\" name=\"seed " + std::to_string(seed) + "\" time=\""));
  }
  EXPECT_THAT(xml, HasSubstr("<error type=\"CRASHED\" message=\"rank 3 ended the process by SIGSEGV"));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"RANK FAILED\" message=\"rank 1: too early by "));
}

TEST_F(Sweep, EarlierSweepsFolders_AreTakenAway) {
  scenario("sum");
  std::filesystem::create_directories(folder_ / "rehearse-out/sum/seed-7");
  std::filesystem::create_directories(folder_ / "rehearse-out/sum/seed-mine");
  write_file(folder_ / "rehearse-out/sum/seed-7/run.rlog", "old");
  write_file(folder_ / "rehearse-out/sum/seed-7/run.rlog.77.part", "of a worker that was killed");
  write_file(folder_ / "rehearse-out/sum/seed-7/notes.txt", "a user's own");
  write_file(folder_ / "rehearse-out/sum/seed-mine/run.rlog", "a user's own");
  // The sweep must not remove a seed of another sweep, a link, or a file under the name of a seed's folder.
  std::filesystem::create_directories(folder_ / "rehearse-out/sum/seed-9");
  write_file(folder_ / "rehearse-out/sum/seed-9/run.rlog", "another sweep's");
  std::filesystem::create_directories(folder_ / "elsewhere");
  write_file(folder_ / "elsewhere/run.rlog", "a user's own");
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", folder_ / "rehearse-out/sum/seed-8");
  write_file(folder_ / "rehearse-out/sum/seed-6", "a user's own");
  EXPECT_EQ(sweep("sum", {"--seeds=6..8"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/sum/seed-7/run.rlog"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/sum/seed-7/run.rlog.77.part"));
  for (const char* kept :
       {"rehearse-out/sum/seed-7/notes.txt", "rehearse-out/sum/seed-mine/run.rlog", "rehearse-out/sum/seed-9/run.rlog",
        "elsewhere/run.rlog", "rehearse-out/sum/seed-8", "rehearse-out/sum/seed-6"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / kept)) << kept;
  }
}

TEST_F(Sweep, FolderOfAnother_IsRefused) {
  scenario("sum");
  const auto out = folder_ / "rehearse-out/sum";
  std::filesystem::create_directories(out);
  const int other = open(out.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  for (const char* part : {"--jobs=1", "--shard=1/2"}) {
    const auto finished = sweep("sum", {"--seeds=1..2", part});
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_THAT(finished.err, HasSubstr("rehearse-out/sum: cannot be used: another run that is under way leaves its"));
  }
  // Another part of the same sweep.
  ASSERT_EQ(flock(other, LOCK_SH), 0);
  EXPECT_EQ(sweep("sum", {"--seeds=1..2", "--shard=1/2"}).exit_code, 0);
  EXPECT_EQ(sweep("sum", {"--seeds=1..2"}).exit_code, 64);
  close(other);
  EXPECT_EQ(sweep("sum", {"--seeds=1..2"}).exit_code, 0);
}

TEST_F(Sweep, JunitIntoAPipeWithoutAReader_IsRefused) {
  scenario("sum");
  ASSERT_EQ(mkfifo((folder_ / "out.fifo").c_str(), 0600), 0);
  const auto finished = sweep("sum", {"--seeds=1..2", "--junit=out.fifo"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_EQ(finished.err, "out.fifo: cannot be written: nobody reads from this pipe; --junit=FILE names another\n");
}

TEST_F(Sweep, Terminal_ShowsFailuresInPlace) {
  scenario("races");
  const auto finished = run_on_terminal(CLI_JOB, {"sweep", "races.toml", "--seeds=1..40", "--keep-going"}, folder_);
  EXPECT_THAT(finished.out, HasSubstr("\r\x1b[K40/40 100%"));
  EXPECT_THAT(finished.out, HasSubstr(" failures, the first with seed "));
  EXPECT_THAT(finished.out, HasSubstr("\x1b[1;31mFAILED\x1b[0m: "));
}

TEST_F(Sweep, WrongOptions_AreRefused) {
  scenario("sum", "schedule = \"round_robin\"\n");
  const std::string usage = "\nusage: job sweep SCENARIO [options]   (see job sweep --help)\n";
  const std::string takes = "two seeds, the smaller first, as in 1..100, or one, as in 7; at most 10^9 in all";
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"sweep", "sum.toml"}, "job sweep: which seeds? --seeds takes " + takes + usage},
      {{"sweep", "sum.toml", "--seeds=9..1"}, "job sweep: --seeds is \"9..1\"; it takes " + takes + usage},
      {{"sweep", "sum.toml", "--seeds=1.."}, "job sweep: --seeds is \"1..\"; it takes " + takes + usage},
      {{"sweep", "sum.toml", "--seeds=1-9"}, "job sweep: --seeds is \"1-9\"; it takes " + takes + usage},
      {{"sweep", "sum.toml", "--seeds=1..9", "--jobs=0"},
       "job sweep: --jobs is \"0\"; it takes an integer from 1 to 1024" + usage},
      {{"sweep", "sum.toml", "--seeds=1..9", "--keep-going", "--max-failures=2"},
       "job sweep: --keep-going runs all seeds, --max-failures stops before: give one of them" + usage},
      {{"sweep", "sum.toml", "--seeds=1..9"},
       "sum.toml: [world] schedule is \"round_robin\", which makes the same choices whatever the seed; a sweep takes "
       "\"random\", \"pct\", \"pos\", \"deviations\", or none, by which its seeds take turns\n"},
  };
  for (const auto& [arguments, text] : cases) {
    const auto finished = job(arguments);
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_EQ(finished.err, text);
    EXPECT_EQ(finished.out, "");
  }
}

TEST_F(Sweep, ReplayOfASeed_NeedsNoLog) {
  scenario("sum");
  const auto identity = [](const std::string& text) { return text.substr(text.find("identity="), 25); };
  const auto of_scenario = job({"replay", "sum.toml", "--seed=5", "--quiet"});
  EXPECT_EQ(of_scenario.exit_code, 0);
  std::smatch replay;
  const std::regex line("\nreplay: job replay sum.toml --seed=5 (--schedule=pos\\+time\\+preempt)\n");
  ASSERT_TRUE(std::regex_search(of_scenario.out, replay, line)) << of_scenario.out;
  const auto ran = job({"run", "sum.toml", "--seed=5", replay[1], "--quiet"});
  EXPECT_EQ(identity(of_scenario.out), identity(ran.out));
  const auto of_log = job({"replay", "rehearse-out/sum/run.rlog", "--seed=6", "--quiet"});
  EXPECT_THAT(of_log.out, HasSubstr(" seed=6 "));
  EXPECT_NE(identity(of_log.out), identity(ran.out));
}

}  // namespace
}  // namespace rehearse::test
