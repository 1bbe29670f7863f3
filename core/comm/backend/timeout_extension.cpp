// SPDX-License-Identifier: BSD-3-Clause
#include "timeout_extension.h"

#include <utility>

namespace rehearse::comm {

std::chrono::milliseconds TimeoutExtension::take(const c10::intrusive_ptr<RankWork>& work) {
  // An operation that was refused is gone without having ended.
  std::erase_if(owned_, [](const Owned& owned) {
    const auto owner = owned.owner.lock();
    return owner == nullptr || !owner->incomplete();
  });
  if (unowned_.count() > 0) owned_.push_back({c10::weak_intrusive_ptr<RankWork>(work), std::exchange(unowned_, {})});
  std::chrono::milliseconds sum{0};
  for (const auto& owned : owned_) sum += owned.duration;
  return sum;
}

}  // namespace rehearse::comm
