// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace counters {

inline int in_a_header = 0;

inline int& in_a_function() {
  static int counter = 0;
  return counter;
}

template <class T>
struct OfATemplate {
  static inline T counter{};
};

}  // namespace counters
