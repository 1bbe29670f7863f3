// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/matcher/dispute.h"

namespace rehearse::comm {

// "{0, 2}": as new_group() was given them.
std::string members_text(std::span<const int> ranks);

// Of the calls of one new_group(), which is number `index` of the world.
class CreationDispute final : public Dispute {
 public:
  CreationDispute(const Services& services, std::size_t ranks, std::size_t index)
      : Dispute(services, ranks), index_(index) {}

  // `rank` passed `members` and `name`.
  void add(int rank, std::span<const int> members, std::string_view name, exec::CallSite where);

 private:
  struct Call {
    std::vector<int> members;
    std::string name;
    bool operator==(const Call&) const = default;
  };

  Mismatch mismatch() const override;

  const std::size_t index_;
  std::vector<Call> calls_;  // of each party
};

// A rank in a new_group() about which the ranks disagree.
class CreationObserver final : public exec::Observer {
 public:
  CreationObserver(const Dispute& dispute, std::size_t index, int rank)
      : dispute_(dispute), index_(index), rank_(rank) {}
  std::string describe() const override;
  std::string call() const override;
  std::vector<int> waits_for() const override { return dispute_.opponents(rank_); }

 private:
  const Dispute& dispute_;
  const std::size_t index_;
  const int rank_;
};

}  // namespace rehearse::comm
