// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/matcher/dispute.h"

namespace rehearse::comm {

// A rank in a new_group() about which the ranks disagree.
class CreationObserver final : public exec::Observer {
 public:
  CreationObserver(const Dispute& dispute, std::size_t index, int rank)
      : dispute_(dispute), index_(index), rank_(rank) {}
  std::string describe() const override;
  std::string call() const override;
  std::vector<int> waits_for() const override { return dispute_.vote().opponents(rank_); }

 private:
  const Dispute& dispute_;
  const std::size_t index_;
  const int rank_;
};

}  // namespace rehearse::comm
