// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// How much time may still pass by choice, while fibers can run (ExecutorOptions::patience). Time that passes because no
// fiber can run brings back a tenth of itself. So no fiber that can run waits longer than the patience, and what a
// program measures between two of its own steps grows by at most the patience and a tenth.
class Patience {
 public:
  explicit Patience(VirtualDuration most) noexcept : most_(most), left_(most) {}

  VirtualDuration left() const noexcept { return left_; }
  void note_passed_by_choice(VirtualDuration time) noexcept { left_ -= time; }
  void note_passed(VirtualDuration time) noexcept {
    constexpr int kParts = 10;
    left_ = std::min(most_, left_ + time / kParts);
  }

 private:
  const VirtualDuration most_;
  VirtualDuration left_;
};

}  // namespace rehearse::exec
