// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <c10/util/FunctionRef.h>

#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/vote.h"

namespace rehearse::comm {

// One call by which ranks make a group together, as far as they have made it: a new_group(), which all ranks of the
// world call alike. Ranks are ranks of the world.
class CreationCalls {
 public:
  // `ranks` of the world. `index`: which new_group() of it.
  CreationCalls(std::size_t ranks, std::size_t index) : index_(index), vote_(ranks) {}

  // Is it what all have passed so far? So is the first one.
  bool fits(std::span<const int> members, std::string_view name) const noexcept;

  // `rank` passed `members` and `name`, for the first time. `where`: as Vote::cast().
  void add(int rank, std::span<const int> members, std::string_view name, c10::function_ref<exec::CallSite()> where);

  // Have all passed the same?
  bool fit() const noexcept { return calls_.size() <= 1; }
  const Vote& vote() const noexcept { return vote_; }

  // The ranks of `of` that have called it, or have not, in order.
  std::vector<int> called_by(std::span<const int> of) const;
  std::vector<int> missing(std::span<const int> of) const;

  // Where they have not.
  Mismatch mismatch() const;

 private:
  struct Call {
    std::vector<int> members;
    std::string name;
    bool is(std::span<const int> others, std::string_view other_name) const noexcept;
  };

  const std::size_t index_;
  Vote vote_;
  std::vector<Call> calls_;  // of each party
};

}  // namespace rehearse::comm
