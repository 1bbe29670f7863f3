// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::exec {

// What a blocked call tells about itself. Scheduler, deadlock report, trace and replay read this one object, so they
// cannot disagree. It lives on the stack of the blocked call; nothing in it is computed unless somebody asks.
class Observer {
 public:
  virtual ~Observer() = default;

  // One line without a full stop, e.g. `allreduce #7 on group "world" (3 of 4 ranks have called it)`.
  virtual std::string describe() const = 0;

  // The call alone, e.g. `allreduce #7 on group "world"`.
  virtual std::string call() const { return describe(); }

  // The ranks (of the world) without which the call cannot go on; empty when unknown. Edges of the wait-for graph.
  virtual std::vector<int> waits_for() const { return {}; }

  // Would any other rank do, as for a key of a store? waits_for() is empty then.
  virtual bool any_rank_may_end_it() const { return false; }

  // A primitive of libc that cannot say what it is there for, such as the condition variable inside a future: reports
  // then ask the executor's WaitExplainer.
  virtual bool is_opaque() const { return false; }

  // Equal for calls that are the same operation, whatever rank makes them; 0 when there is no such notion.
  virtual std::uint64_t fingerprint() const { return 0; }
};

// For calls whose line is known up front.
class FixedObserver final : public Observer {
 public:
  explicit FixedObserver(const char* line) : line_(line) {}
  std::string describe() const override { return line_; }

 private:
  const char* line_;
};

// A FixedObserver for primitives that code of any kind waits with.
class OpaqueObserver final : public Observer {
 public:
  explicit OpaqueObserver(const char* line) : line_(line) {}
  std::string describe() const override { return line_; }
  bool is_opaque() const override { return true; }

 private:
  const char* line_;
};

// Knows what a rank has begun and not seen the end of. Asked when a report is made, never while ranks run.
class WaitExplainer {
 public:
  struct Explanation {
    // As in Observer; empty: the rank has nothing pending.
    std::string description;
    std::string call;
    std::vector<int> waits_for;
  };

  virtual ~WaitExplainer() = default;

  // What an opaque wait of `rank` must be for.
  virtual Explanation explain_wait(int rank) const = 0;
};

}  // namespace rehearse::exec
