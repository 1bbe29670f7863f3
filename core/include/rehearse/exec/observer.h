// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse::exec {

// What a blocked call waits for.
struct Wait {
  enum class Kind {
    other,  // see the texts
    call,   // a call of a group
    key,    // one key of a store, which is not set
    lock,   // a lock that another fiber holds
    once,   // an initialisation that happens once in a process, and that another fiber has begun
  };

  // One line without a full stop, e.g. `allreduce #7 on group "world" (3 of 4 ranks have called it)`.
  std::string waits_on;
  std::string call{};  // the call alone, e.g. `allreduce #7 on group "world"`; an observer may leave it empty: as above
  // The ranks of the world without which the call cannot go on; empty if unknown. These are edges of the wait-for
  // graph.
  std::vector<int> waits_for{};
  // True if any other rank could end the wait, for example by setting a key of a store. Then waits_for is empty.
  bool any_rank = false;
  Kind kind = Kind::other;
  std::string object{};  // for a lock and an initialisation: "mutex", "the initialisation of a static variable"
};

// Describes one blocked call. Deadlock reports, errors about timeouts and the debugger all ask this object, so they
// cannot disagree. It lives on the stack of the blocked call and computes its answer on demand.
class Observer {
 public:
  virtual ~Observer() = default;

  Wait wait() const {
    Wait wait = describe();
    if (wait.call.empty()) wait.call = wait.waits_on;
    return wait;
  }

  // True for a wait in a primitive of libc, such as the condition variable inside a future. The primitive does not show
  // what the caller really waits for, so reports ask the executor's WaitExplainer.
  virtual bool is_opaque() const { return false; }

 private:
  virtual Wait describe() const = 0;
};

// Describes a call by a fixed line.
class FixedObserver final : public Observer {
 public:
  explicit FixedObserver(const char* line) : line_(line) {}

 private:
  Wait describe() const override { return {line_}; }

  const char* line_;
};

// A FixedObserver for primitives that any kind of code may use to wait.
class OpaqueObserver final : public Observer {
 public:
  explicit OpaqueObserver(const char* line) : line_(line) {}
  bool is_opaque() const override { return true; }

 private:
  Wait describe() const override { return {line_}; }

  const char* line_;
};

// Knows, for each rank, the calls whose end the rank has not seen. Only reports use it: while no rank runs, or after
// the world has ended.
class WaitExplainer {
 public:
  virtual ~WaitExplainer() = default;

  // The pending call for which an opaque wait of `rank` most likely waits; without texts if the rank has none.
  virtual Wait explain_wait(int rank) const = 0;
};

}  // namespace rehearse::exec
