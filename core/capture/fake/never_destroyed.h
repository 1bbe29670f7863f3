// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

namespace rehearse::capture {

// A static object that is left in place at exit: for kernels, since LibTorch's dispatcher may be gone before them. It
// lies in static memory and not behind a pointer that nobody reads, so that no leak is seen in it.
//   static const NeverDestroyed<torch::Library> library([] { torch::Library made(...); ...; return made; });
template <class T>
class NeverDestroyed {
 public:
  template <class Make>
  explicit NeverDestroyed(Make&& make) : value_(std::forward<Make>(make)()) {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;
  ~NeverDestroyed() {}

 private:
  union {
    T value_;
  };
};

}  // namespace rehearse::capture
