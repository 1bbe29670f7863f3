// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::exec {

// Describes one blocked call. Deadlock reports, errors about timeouts and the debugger all ask this object, so they
// cannot disagree. It lives on the stack of the blocked call and computes its answers on demand.
class Observer {
 public:
  virtual ~Observer() = default;

  // One line without a full stop, e.g. `allreduce #7 on group "world" (3 of 4 ranks have called it)`.
  virtual std::string describe() const = 0;

  // The call alone, e.g. `allreduce #7 on group "world"`.
  virtual std::string call() const { return describe(); }

  // The ranks of the world without which the call cannot go on; empty if unknown. These are edges of the wait-for
  // graph.
  virtual std::vector<int> waits_for() const { return {}; }

  // True if any other rank could end the wait, for example by setting a key of a store. Then waits_for() is empty.
  virtual bool any_rank_may_end_it() const { return false; }

  // True for a wait in a primitive of libc, such as the condition variable inside a future. The primitive does not show
  // what the caller really waits for, so reports ask the executor's WaitExplainer.
  virtual bool is_opaque() const { return false; }

  // Equal for calls that are the same operation, on any rank. 0 if the call has no fingerprint.
  virtual std::uint64_t fingerprint() const { return 0; }
};

// Describes a call by a fixed line.
class FixedObserver final : public Observer {
 public:
  explicit FixedObserver(const char* line) : line_(line) {}
  std::string describe() const override { return line_; }

 private:
  const char* line_;
};

// A FixedObserver for primitives that any kind of code may use to wait.
class OpaqueObserver final : public Observer {
 public:
  explicit OpaqueObserver(const char* line) : line_(line) {}
  std::string describe() const override { return line_; }
  bool is_opaque() const override { return true; }

 private:
  const char* line_;
};

// Knows, for each rank, the calls whose end the rank has not seen. Only reports use it: while no rank runs, or after
// the world has ended.
class WaitExplainer {
 public:
  struct Explanation {
    // As in Observer. Empty if the rank has no pending call.
    std::string description;
    std::string call;
    std::vector<int> waits_for;
  };

  virtual ~WaitExplainer() = default;

  // Describes the pending call for which an opaque wait of `rank` most likely waits.
  virtual Explanation explain_wait(int rank) const = 0;
};

}  // namespace rehearse::exec
