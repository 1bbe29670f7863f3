// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Contract: in gdb, `info ranks` says what every rank waits for and where, and `rank N bt` shows the stack of a rank
// that does not run. If gdb cannot call functions of the program, `info ranks` leaves out the waits and says why. The
// test is skipped with a message if gdb is not installed (./dev installs it) or may not start a process.
namespace rehearse::exec {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The output of a shell command on stdout and stderr.
std::string printed_by(const std::string& command) {
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> buffer{};
  for (auto got = fread(buffer.data(), 1, buffer.size(), pipe); got > 0;
       got = fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), got);
  }
  pclose(pipe);
  return text;
}

// On processors with AMX, gdb 13 calls no function, because it cannot write back the registers.
bool gdb_can_call() {
  return printed_by("gdb -batch -nx -ex run -ex 'print (int)getpid() > 0' " DEBUGGER_TARGET).find("$1 = 1") !=
         std::string::npos;
}

TEST(Debugger, Ranks_HaveTheirStacks) {
  if (printed_by("gdb -batch -nx -ex run /bin/true").find("exited normally") == std::string::npos) {
    GTEST_SKIP() << "gdb is not installed, or may not start a process: its script was not tried";
  }
  const auto text =
      printed_by("gdb -batch -nx -ex run -ex 'source " DEBUGGER_SCRIPT
                 "' -ex 'info ranks' -ex 'echo -- rank 2\\n' -ex 'rank 2 bt' "
                 "-ex 'echo -- thread\\n' -ex bt -ex 'echo -- rank 7\\n' -ex 'rank 7 bt' " DEBUGGER_TARGET);
  const auto section = [&](const std::string& title) {
    const auto from = text.find("-- " + title + "\n");
    return from == std::string::npos ? "" : text.substr(from, text.find("\n-- ", from) - from);
  };
  EXPECT_THAT(text, HasSubstr("* rank 0      running "));
  const bool calls = gdb_can_call();
  const std::string waits = calls ? "rank 0's word  in " : "";
  EXPECT_THAT(text, ContainsRegex("  rank 1      blocked   " + waits + "wait_for_rank_0.*debugger_target.cpp:[0-9]+"));
  EXPECT_THAT(text, ContainsRegex("  rank 2      blocked   " + waits + "wait_for_rank_0.*debugger_target.cpp:[0-9]+"));
  const std::string note = "What the blocked ranks wait for is not known, for gdb cannot call the program: ";
  EXPECT_EQ(text.find(note) == std::string::npos, calls) << text;
  EXPECT_THAT(section("rank 2"), HasSubstr("\n#1 "));
  EXPECT_THAT(section("rank 2"), HasSubstr("wait_for_rank_0"));
  EXPECT_THAT(section("rank 2"), Not(HasSubstr("stop_in_the_debugger")));
  // After `rank 2 bt`, a plain bt still shows the stack of the rank that runs.
  EXPECT_THAT(section("thread"), HasSubstr("stop_in_the_debugger"));
  EXPECT_THAT(section("thread"), Not(HasSubstr("wait_for_rank_0")));
  EXPECT_THAT(text, HasSubstr("there is no rank 7, or it has ended; `info ranks` lists those that live\n")) << text;
}

}  // namespace
}  // namespace rehearse::exec
