// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse/sim/compute_model.h>

namespace rehearse::sim {

// While it lives, the operators of the fiber that made it take virtual time. Nothing where the model is off; else a
// boxed fallback at a key above all others, which is in that fiber's key set alone. Ends in the fiber that made it.
class CountedOperators {
 public:
  explicit CountedOperators(const ComputeModel& model);  // outlives it
  CountedOperators(const CountedOperators&) = delete;
  CountedOperators& operator=(const CountedOperators&) = delete;
  ~CountedOperators();

 private:
  std::optional<c10::impl::IncludeDispatchKeyGuard> key_;
};

}  // namespace rehearse::sim
