// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse/job/rank_outcome.h>

namespace rehearse {

// A text in memory that another process reads. The reader sees a whole text, even if the writing process is killed
// between two instructions. If two texts are written during one read, the reader may see a mixture of them. Only one
// thread at a time may write. A text that does not fit is cut off.
class SharedText {
 public:
  void set(std::string_view text) noexcept;
  std::string get() const;

 private:
  static constexpr std::size_t kBytes = 256;

  std::array<std::array<char, kBytes>, 2> copies_{};
  std::atomic<std::size_t> current_{0};
};

// The crash record of a process that is one rank. If the object lies in shared memory, another process can report how
// far the rank came, even after this process was killed. Thread safe; writing never blocks for long, and known() never
// blocks.
class RankNote {
 public:
  // Starts a run: `began` is its time zero, by exec::machine_time(). Clears the notes of the previous run.
  void begin(VirtualDuration began) noexcept;

  void count_call() noexcept { ++calls_; }
  // A call of the rank has completed: "allreduce #2 on group "world"".
  void completed(std::string_view call) noexcept;

  // While it lives, the rank waits in `call`. Only the process's first thread takes notes, because reports say where
  // that thread is.
  class Wait {
   public:
    explicit Wait(std::string_view call) noexcept;
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait();

   private:
    const bool noted_;
  };

  // The world ends. The wait that the rank is in stays noted while the rank unwinds from it. `waits_on` and
  // `waits_for`: what the coordinator knows about that wait; may be empty.
  void world_ends(std::string_view waits_on, std::span<const int> waits_for) noexcept;

  // The rank's body ended at `at`: it returned, or it failed. `what`: the failure's text.
  void body_ended(RankOutcome how, std::string_view what, VirtualTime at) noexcept;

  struct Known {
    std::optional<VirtualDuration> began;  // nullopt: the run had not begun
    std::uint64_t calls = 0;
    std::string completed_last;  // empty: no call had completed
    std::string waits_in;        // empty: it was in no waiting call
    std::vector<int> waits_for;  // empty: unknown
    std::optional<RankOutcome> ended;
    std::string what;  // the failure's text
    VirtualTime ended_at{};
  };
  Known known() const;

 private:
  static constexpr std::size_t kRanksMost = 256;
  static constexpr std::int64_t kNotBegun = -1;
  static constexpr int kNotEnded = -1;

  std::mutex completing_;  // because back ends complete calls on their own threads
  std::atomic<std::int64_t> began_ns_{kNotBegun};
  std::atomic<std::uint64_t> calls_{0};
  SharedText completed_last_, waits_in_, waits_on_, what_;
  std::atomic<bool> world_ends_{false};
  std::array<int, kRanksMost> waits_for_{};
  std::atomic<std::size_t> waits_for_count_{0};
  std::atomic<int> ended_{kNotEnded};
  std::atomic<std::int64_t> ended_at_ns_{0};
};

// The crash record of this process: the one that a LentRankNote lends, otherwise one that nobody reads.
RankNote& rank_note() noexcept;

// While it lives, rank_note() is `note`. Only one object may exist at a time.
class LentRankNote {
 public:
  explicit LentRankNote(RankNote& note) noexcept;
  LentRankNote(const LentRankNote&) = delete;
  LentRankNote& operator=(const LentRankNote&) = delete;
  ~LentRankNote();
};

}  // namespace rehearse
