// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>

namespace rehearse::comm {

// Time that one rank's operations on a group get in addition to their time limits: c10d's ephemeral timeout, by the
// rules of ProcessGroupNCCL. The first operation after an extension owns it. Operations that start before the owner
// ends get the extension, too; later ones do not. `EachWork` must have incomplete().
template <class EachWork>
class TimeoutExtension {
 public:
  void add(std::chrono::milliseconds duration) { unowned_ += duration; }

  // The additional time of an operation that begins now. Call begun() after its work has been made.
  std::chrono::milliseconds of_next() {
    // The work of a refused operation is destroyed without having ended.
    std::erase_if(owned_, [](const Owned& owned) {
      const auto owner = owned.owner.lock();
      return owner == nullptr || !owner->incomplete();
    });
    std::chrono::milliseconds sum = unowned_;
    for (const auto& owned : owned_) sum += owned.duration;
    return sum;
  }

  void begun(const c10::intrusive_ptr<EachWork>& work) {
    if (unowned_.count() > 0) owned_.push_back({c10::weak_intrusive_ptr<EachWork>(work), std::exchange(unowned_, {})});
  }

 private:
  struct Owned {
    c10::weak_intrusive_ptr<EachWork> owner;
    std::chrono::milliseconds duration;
  };

  std::chrono::milliseconds unowned_{0};
  std::vector<Owned> owned_;
};

}  // namespace rehearse::comm
