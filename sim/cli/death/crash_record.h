// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/job/rank_outcome.h>
#include <rehearse/job/report.h>
#include <sys/mman.h>

namespace rehearse::cli {

template <class T>
struct Unmap {
  void operator()(T* object) const noexcept { munmap(object, sizeof *object); }
};

// An object that this process shares with the processes that it forks.
template <class T>
using Shared = std::unique_ptr<T, Unmap<T>>;

// Throws std::system_error.
template <class T>
Shared<T> make_shared_with_forks() {
  void* const memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "memory to share with a process");
  return Shared<T>(new (memory) T);
}

// A fault that has fired. One that has not fired has 0 times.
struct FiredFault {
  std::uint64_t times = 0;
  int rank = -1;           // this field and the next two are of the first time
  std::int64_t at_ns = 0;  // virtual time
  std::array<char, 128> call{};
  std::array<char, 256> text{};
};

// A dying process's record about its running rank and the faults of its world. A signal handler writes the record, so
// it is plain memory. Another process reads the record, so its memory is shared.
struct CrashRecord {
  int signal = 0;                          // 0: no signal was recorded
  int rank = -1;                           // -1: no rank was running
  std::int64_t at_ns = 0;                  // virtual time
  std::size_t overflowed_stack_bytes = 0;  // 0: the stack did not overflow
  std::size_t frames = 0;
  std::array<void*, exec::CallSite::kFramesMax> addresses;
  // Those of an interpreter's frames, as exec::Interpreter::write_place() writes them; empty: a compiled frame.
  std::array<std::array<char, 512>, exec::CallSite::kFramesMax> places{};
  Verdict verdict = Verdict::crashed;  // this field and the next three are set only at an early end (see EarlyEnd)
  std::array<char, 1024> headline{};
  RankOutcome state = RankOutcome::stopped;
  std::array<char, 256> doing{};
  std::array<FiredFault, 32> faults{};
  std::array<char, 512> failed_check{};  // of Rehearse itself; empty: none
  std::array<char, 256> call{};          // the call that blocks the rank, such as "connect()"; empty: none, or unknown
};

using SharedCrashRecord = Shared<CrashRecord>;

// True if Rehearse itself is to blame.
inline bool is_internal(const CrashRecord& crash) noexcept { return crash.failed_check.front() != '\0'; }

// Async-signal-safe.
void note_crash(CrashRecord& crash, int signal) noexcept;

// Async-signal-safe.
void note_call(CrashRecord& crash, std::string_view call) noexcept;

// Ends the process by the system call itself, because _exit() on a rank would fail only that rank. Async-signal-safe.
[[noreturn]] void end_process(int code) noexcept;

// For example "SIGSEGV (Segmentation fault)".
std::string signal_text(int signal);

// Adds the places of an interpreter's frames. Async-signal-safe.
void note_places(CrashRecord& crash) noexcept;

exec::CallSite site_of(const CrashRecord& crash);

// The first faults of the world, as far as they have fired.
std::vector<FaultLine> faults_of(const CrashRecord& crash);

// The rank's line with its place. The calling process must have the same modules at the same addresses as the dead one.
RankLine line_of(const CrashRecord& crash, RankOutcome state, std::string doing);

// While it exists, `crash` has the faults that have fired, and a signal that ends the process from within (a fault,
// abort()) records where the rank was and calls `tell` if there is one. The process then ends with the exit code that
// `tell` returns. Without a code, or if somebody else (a sanitizer) had a handler before, it ends as it would have
// without this object. Only one may exist at a time. `crash` must outlive this object.
class CrashRecordScope {
 public:
  explicit CrashRecordScope(CrashRecord& crash, std::optional<int> (*tell)() = nullptr);
  CrashRecordScope(const CrashRecordScope&) = delete;
  CrashRecordScope& operator=(const CrashRecordScope&) = delete;
  ~CrashRecordScope();
};

}  // namespace rehearse::cli
