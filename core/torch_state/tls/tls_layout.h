// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "torch_state/tls/elf_tls.h"

namespace rehearse::torch_state {

// A contiguous part of a library's thread-local block.
struct TlsRange {
  std::size_t module = 0;  // index into TlsLayout::modules
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct TlsLayout {
  std::vector<TlsModule> modules;
  std::vector<TlsRange> ranges;  // exchanged per fiber; ordered by module, then offset
  TlsRange thread_id;            // the RecordFunction thread id; not part of the ranges
};

// Throws TorchStateError(version_differs) with the text and what to do. With REHEARSE_UNTESTED_LIBTORCH=1 in the
// environment, says it on standard error and returns.
void refuse_version(const std::string& library, const std::string& what);

// The layout of the loaded LibTorch, including its CUDA libraries if they are loaded by now. Computed once for each set
// of libraries. If it throws TorchStateError, the next call tries again.
const TlsLayout& tls_layout();

}  // namespace rehearse::torch_state
