// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <rehearse/exec/call_site.h>
#include <rehearse/job/rank_outcome.h>
#include <rehearse/job/report.h>

#include "cli/death/shared.h"

namespace rehearse::cli {

// What a process notes of the rank that runs when it is about to die. A signal handler writes it, hence plain
// memory; another process reads it, hence shared memory.
struct CrashRecord {
  int signal = 0;                          // 0: nothing was noted
  int rank = -1;                           // -1: none was running
  std::int64_t at_ns = 0;                  // virtual time
  std::size_t overflowed_stack_bytes = 0;  // 0: it was not the stack
  std::size_t frames = 0;
  std::array<void*, exec::CallSite::kFramesMax> addresses;
  Verdict verdict = Verdict::crashed;  // of an early end, which has a headline:
  std::array<char, 1024> headline{};
  RankOutcome state = RankOutcome::stopped;
  std::array<char, 256> doing{};
  std::array<char, 256> call{};  // "connect()": it is blocked in the kernel; empty: not, or not known
};

using SharedCrashRecord = Shared<CrashRecord>;

// Async-signal-safe.
void note_crash(CrashRecord& crash, int signal) noexcept;

// Async-signal-safe.
void note_call(CrashRecord& crash, std::string_view call) noexcept;

// _exit(), which on a rank is that rank's failure. Async-signal-safe.
[[noreturn]] void end_process(int code) noexcept;

// "SIGSEGV (Segmentation fault)"
std::string signal_text(int signal);

// Where the rank was.
exec::CallSite site_of(const CrashRecord& crash);

// Where the rank was, found out by a process that has the same modules at the same addresses.
RankLine line_of(const CrashRecord& crash, RankOutcome state, std::string doing);

// While it lives, a signal that ends the process from within (a fault, abort()) notes where the rank was and calls
// `tell`, if there is one. The process then ends with the exit code that this gives; without one, or where
// others (a sanitizer) had a handler before, as it would have. One at a time; `crash` outlives it.
class CrashRecordScope {
 public:
  explicit CrashRecordScope(CrashRecord& crash, std::optional<int> (*tell)() = nullptr);
  CrashRecordScope(const CrashRecordScope&) = delete;
  CrashRecordScope& operator=(const CrashRecordScope&) = delete;
  ~CrashRecordScope();
};

}  // namespace rehearse::cli
