// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// A static object whose destructor never runs, for registered kernels: LibTorch's dispatcher may be destroyed before
// them. The object lies in static memory, not behind a pointer that nobody reads, so leak checkers do not report it.
//   static const NeverDestroyed<torch::Library> library([] { torch::Library made(...); ...; return made; });
template <class T>
class NeverDestroyed {
 public:
  template <class Make>
  explicit NeverDestroyed(Make make) : value_(make()) {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;
  ~NeverDestroyed() {}

 private:
  union {
    T value_;
  };
};

}  // namespace rehearse::capture
