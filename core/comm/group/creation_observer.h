// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rehearse/exec/observer.h>

#include "comm/agree/creation_calls.h"

namespace rehearse::comm {

// Describes a rank that waits in a new_group() on which the ranks disagree.
class CreationObserver final : public exec::Observer {
 public:
  CreationObserver(const CreationCalls& calls, std::size_t index, int rank)
      : calls_(calls), index_(index), rank_(rank) {}
  std::string describe() const override;
  std::string call() const override;
  std::vector<int> waits_for() const override { return calls_.vote().disagreeing_ranks(rank_); }

 private:
  const CreationCalls& calls_;
  const std::size_t index_;
  const int rank_;
};

}  // namespace rehearse::comm
