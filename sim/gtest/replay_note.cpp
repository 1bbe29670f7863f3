// SPDX-License-Identifier: BSD-3-Clause
#include "replay_note.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace {

class ReplayNote final : public ::testing::EmptyTestEventListener {
 public:
  struct Log {
    std::string program;
    bool taken = false;
  };

  void OnTestProgramEnd(const ::testing::UnitTest&) override {
    for (const auto& [file, log] : logs) {
      if (log.taken) continue;
      fmt::print(stderr,
                 "rehearse: no check used REHEARSE_REPLAY={}: the test \"{}\" wrote that log, and it did not run\n",
                 file, log.program);
    }
  }

  std::map<std::string, Log> logs;  // by file
};

}  // namespace

void note_replay(const std::string& file, const std::string& program, bool taken) {
  static ReplayNote& note = [&]() -> ReplayNote& {
    auto* const made = new ReplayNote;  // GoogleTest owns it
    ::testing::UnitTest::GetInstance()->listeners().Append(made);
    return *made;
  }();
  auto& log = note.logs[file];
  log.program = program;
  log.taken |= taken;
}

}  // namespace rehearse
