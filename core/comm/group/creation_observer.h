// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <rehearse/exec/observer.h>

#include "comm/agree/creation_calls.h"

namespace rehearse::comm {

// Describes a rank that waits in a new_group() on which the ranks disagree.
class CreationObserver final : public exec::Observer {
 public:
  CreationObserver(const CreationCalls& calls, std::size_t index, int rank)
      : calls_(calls), index_(index), rank_(rank) {}

 private:
  exec::Wait describe() const override;

  const CreationCalls& calls_;
  const std::size_t index_;
  const int rank_;
};

}  // namespace rehearse::comm
