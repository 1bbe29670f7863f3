// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <vector>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// What one rank's operations on a group get on top of their time limits: c10d's ephemeral timeout, by the rules of
// ProcessGroupNCCL. The first operation after an extension owns it; others that begin while that one is under way have
// it too; with its end the extension is over.
class TimeoutExtension {
 public:
  void add(std::chrono::milliseconds duration) { unowned_ += duration; }

  // For `work`, which begins.
  std::chrono::milliseconds take(const c10::intrusive_ptr<RankWork>& work);

 private:
  struct Owned {
    c10::weak_intrusive_ptr<RankWork> owner;
    std::chrono::milliseconds duration;
  };

  std::chrono::milliseconds unowned_{0};
  std::vector<Owned> owned_;
};

}  // namespace rehearse::comm
