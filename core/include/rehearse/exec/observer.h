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

  // One line without a full stop, e.g. `allreduce #7 on group "world"`.
  virtual std::string describe() const = 0;

  // Could the call go on now? The executor wakes a call only when its condition may have changed; searching
  // schedulers use this to prune.
  virtual bool is_enabled() const { return false; }

  // The ranks (of the world) without which the call cannot go on; empty when unknown. Edges of the wait-for graph.
  virtual std::vector<int> waits_for() const { return {}; }

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

}  // namespace rehearse::exec
