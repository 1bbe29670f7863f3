// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>

namespace rehearse::comm {

// What one rank's operations on a group get on top of their time limits: c10d's ephemeral timeout, by the rules of
// ProcessGroupNCCL. The first operation after an extension owns it; others that begin while that one is under way have
// it too; with its end the extension is over. `EachWork` says whether it is incomplete().
template <class EachWork>
class TimeoutExtension {
 public:
  void add(std::chrono::milliseconds duration) { unowned_ += duration; }

  // What an operation that begins now gets. Call begun() once its work is made.
  std::chrono::milliseconds of_next() {
    // An operation that was refused is gone without having ended.
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
