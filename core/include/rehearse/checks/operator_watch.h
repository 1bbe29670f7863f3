// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rehearse::checks {

class RankWatch;

// While it lives, the operators of the fiber that made it are shown to `watch`. Null: nothing. A boxed fallback at a
// key of its own, above autograd, which is in that fiber's key set alone. Ends in the fiber that made it.
class OperatorWatch {
 public:
  explicit OperatorWatch(RankWatch* watch);  // outlives it
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;
  ~OperatorWatch();

 private:
  std::optional<c10::impl::IncludeDispatchKeyGuard> key_;
};

}  // namespace rehearse::checks
