// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rehearse::capture {

// While it lives, matmul is decomposed above autograd as in LibTorch, but with symbolic sizes. LibTorch's own kernel
// asks for plain numbers, which would fix every symbolic batch size. Registers its kernel on first use.
class SymbolicMatmul {
 public:
  SymbolicMatmul();

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace rehearse::capture
