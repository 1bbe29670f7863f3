// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rehearse::capture {

// While it lives, matmul above autograd is taken apart as LibTorch does it, but by symbolic sizes: LibTorch's own
// kernel asks for numbers, which would make every symbolic batch one. Registers its kernel on first use.
class SymbolicMatmul {
 public:
  SymbolicMatmul();

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace rehearse::capture
