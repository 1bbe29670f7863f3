// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <rehearse/exec/time.h>

#include "world_parts.h"

namespace rehearse::exec {

// The planned restarts of ranks. The world waits for them even if all ranks have ended.
class Restarts {
 public:
  explicit Restarts(WorldParts& world) noexcept;
  Restarts(const Restarts&) = delete;
  Restarts& operator=(const Restarts&) = delete;
  ~Restarts();

  // See restart_rank(), is_to_begin_again() and WorldHold.
  void plan(int rank, VirtualDuration after, std::function<void()> before);
  bool is_planned(int rank) const noexcept;
  void hold() noexcept { ++holds_; }
  void let_go() noexcept;

  // Whether a rank may still be restarted.
  bool are_awaited() const noexcept;
  // The world has ended: cancels all planned restarts.
  void call_off() noexcept;

 private:
  class Restart;
  void begin_again(const Restart& restart) noexcept;

  WorldParts& world_;
  std::vector<std::unique_ptr<Restart>> planned_;  // every restart that was requested
  std::size_t due_ = 0;
  std::size_t holds_ = 0;
};

}  // namespace rehearse::exec
