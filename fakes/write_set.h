// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include <rehearse_internal/exec/check.h>

#include "region.h"

namespace rehearse::fakes {

// The memory that a set of regions spans. Answers in O(log n) whether a region touches any of it.
class WriteSet {
 public:
  void add(const Region& region, std::int64_t count, std::size_t element_bytes) {
    REHEARSE_CHECK(!sealed_, spans_.size());
    if (count > 0) spans_.push_back(extent(region, count, element_bytes));
  }

  // Call this once, after the last add() and before the first touches().
  void seal() {
    REHEARSE_CHECK(!sealed_, spans_.size());
    sealed_ = true;
    std::sort(spans_.begin(), spans_.end(),
              [](const Extent& a, const Extent& b) { return std::less<>{}(a.begin, b.begin); });
    // From here on, `end` is the furthest end among this span and the ones before it.
    for (std::size_t i = 1; i < spans_.size(); ++i) spans_[i].end = std::max(spans_[i].end, spans_[i - 1].end);
  }

  bool touches(const Region& region, std::int64_t count, std::size_t element_bytes) const {
    REHEARSE_CHECK(sealed_, spans_.size());
    if (count == 0) return false;
    const Extent wanted = extent(region, count, element_bytes);
    const auto after =
        std::lower_bound(spans_.begin(), spans_.end(), wanted.end,
                         [](const Extent& span, const std::byte* end) { return std::less<>{}(span.begin, end); });
    return after != spans_.begin() && std::less<>{}(wanted.begin, std::prev(after)->end);
  }

 private:
  std::vector<Extent> spans_;
  bool sealed_ = false;
};

}  // namespace rehearse::fakes
