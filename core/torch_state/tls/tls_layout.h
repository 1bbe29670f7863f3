// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "torch_state/tls/elf_tls.h"

namespace rehearse::torch_state {

// A stretch of a library's thread-local block.
struct TlsRange {
  std::size_t module = 0;  // index into TlsLayout::modules
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct TlsLayout {
  std::vector<TlsModule> modules;
  std::vector<TlsRange> ranges;  // per fiber; by module, then offset
  TlsRange thread_id;            // where the RecordFunction thread id is kept; in none of the ranges
};

// The layout of the loaded LibTorch, with its CUDA libraries when they are loaded by now; computed once for each set of
// libraries. Throws TorchStateError; then the next call tries again.
const TlsLayout& tls_layout();

}  // namespace rehearse::torch_state
