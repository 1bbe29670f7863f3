// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <list>
#include <utility>

#include <rehearse_internal/comm/fabric.h>

namespace rehearse::comm {

// For a fabric in front of another one: the transfers that the front fabric follows to their end, oldest first.
// `Followed` is the Completion that the front fabric passes on; Followed::done() returns the Completion that the caller
// passed. Addresses are stable while a transfer is followed.
template <class Followed>
class FollowedTransfers {
 public:
  template <class... Arguments>
  Followed& follow(Arguments&&... arguments) {
    return under_way_.emplace_back(std::forward<Arguments>(arguments)...);
  }

  // The followed transfer whose caller passed `done`; null: none.
  Followed* of(const Completion& done) noexcept {
    return find([&](const Followed& each) { return &each.done() == &done; });
  }
  // False if the transfer has been released meanwhile.
  bool follows(const Followed* followed) noexcept {
    return find([&](const Followed& each) { return &each == followed; }) != nullptr;
  }
  // The oldest followed transfer for which `is_it` returns true; null: none.
  template <class Predicate>
  Followed* find(const Predicate& is_it) noexcept {
    const auto found = std::find_if(under_way_.begin(), under_way_.end(), is_it);
    return found == under_way_.end() ? nullptr : &*found;
  }

  // Stops following the transfer, and destroys `followed`.
  void release(const Followed& followed) noexcept {
    under_way_.remove_if([&](const Followed& each) { return &each == &followed; });
  }

  auto begin() noexcept { return under_way_.begin(); }
  auto end() noexcept { return under_way_.end(); }

 private:
  std::list<Followed> under_way_;
};

}  // namespace rehearse::comm
