// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "footprint.h"

namespace rehearse::sim {

// How many of these bytes the process can read before the first byte that is unmapped or protected. Asks the kernel,
// which takes a tenth of a microsecond for each page. Returns the full size if the kernel or a sandbox does not allow
// the question.
std::size_t readable_bytes(const ByteSpan& bytes) noexcept;

}  // namespace rehearse::sim
