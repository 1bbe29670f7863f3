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

// The calls of one new_group() that ranks have made so far. All ranks of the world must make the same call. Ranks are
// ranks of the world.
class CreationCalls {
 public:
  // `ranks`: the size of the world. `index`: the number of the new_group() in the world.
  CreationCalls(std::size_t ranks, std::size_t index) : index_(index), vote_(ranks) {}

  // Whether the arguments equal those of all calls so far. True for the first call.
  bool fits(std::span<const int> members, std::string_view name) const noexcept;

  // True if the first call passed the same arguments. At least one rank must have called.
  bool is_first(std::span<const int> members, std::string_view name) const noexcept;

  // Adds the first call of `rank`, with its arguments. `where`: as in Vote::cast().
  void add(int rank, std::span<const int> members, std::string_view name, c10::function_ref<exec::CallSite()> where);

  // Whether all calls so far have equal arguments.
  bool fit() const noexcept { return calls_.size() <= 1; }
  const Vote& vote() const noexcept { return vote_; }

  // The ranks among `of` that have made the call, and those that have not, in the order of `of`.
  std::vector<int> called_by(std::span<const int> of) const;
  std::vector<int> missing(std::span<const int> of) const;

  // Call it only if fit() is false.
  Mismatch mismatch() const;

 private:
  struct Call {
    std::vector<int> members;
    std::string name;
    bool is(std::span<const int> others, std::string_view other_name) const noexcept;
  };

  const std::size_t index_;
  Vote vote_;
  std::vector<Call> calls_;  // one call of each party
};

}  // namespace rehearse::comm
