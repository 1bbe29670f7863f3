// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "footprint.h"

namespace rehearse::sim {

// How many of these bytes the process can read, up to the first that it cannot: where nothing is mapped, or a page is
// protected. Asks the kernel, a tenth of a microsecond a page; all of them where it does not say.
std::size_t readable_bytes(const ByteSpan& bytes) noexcept;

}  // namespace rehearse::sim
