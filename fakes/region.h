// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <c10/core/TensorImpl.h>

namespace rehearse::fakes {

// Consecutive elements of a tensor in logical order, beginning with number `first`. It holds raw memory and sizes:
// reading or writing through it dispatches nothing and touches no thread-local state. Does not own the tensor.
struct Region {
  std::byte* data = nullptr;                // points to the tensor's first element
  const c10::TensorImpl* layout = nullptr;  // null: contiguous
  std::int64_t first = 0;
};

Region read_region(const c10::TensorImpl& tensor);
Region write_region(c10::TensorImpl& tensor);

inline Region advanced(Region region, std::int64_t elements) noexcept {
  region.first += elements;
  return region;
}

inline bool is_contiguous(const Region& region) noexcept { return region.layout == nullptr; }

inline std::byte* address(const Region& region, std::size_t element_bytes) noexcept {
  return region.data + static_cast<std::size_t>(region.first) * element_bytes;
}

// gather() copies elements of the region to `to`; scatter() copies from `from` to the region.
void gather(std::byte* to, const Region& region, std::int64_t count, std::size_t element_bytes);
void scatter(const Region& region, const std::byte* from, std::int64_t count, std::size_t element_bytes);

inline void store(const Region& region, const std::byte* from, std::int64_t count, std::size_t element_bytes) {
  if (!is_contiguous(region)) return scatter(region, from, count, element_bytes);
  std::byte* const to = address(region, element_bytes);
  if (to != from) std::memcpy(to, from, static_cast<std::size_t>(count) * element_bytes);
}

// From the first byte of the region to the end of its last element. If the tensor is not contiguous, the extent of the
// whole tensor.
struct Extent {
  const std::byte* begin;
  const std::byte* end;
};
Extent extent(const Region& region, std::int64_t count, std::size_t element_bytes);  // count > 0

// True if a write to one region could change what the other reads. It compares extents, so the answer may be true for
// regions that merely interleave.
bool may_overlap(const Region& a, std::int64_t a_count, const Region& b, std::int64_t b_count,
                 std::size_t element_bytes);

// True if both regions are the same elements in the same order. Takes non-contiguous regions of two tensor objects for
// different ones, even if they view the same memory.
inline bool same_elements(const Region& a, const Region& b, std::size_t element_bytes) noexcept {
  if (is_contiguous(a) && is_contiguous(b)) return address(a, element_bytes) == address(b, element_bytes);
  return a.layout == b.layout && a.data == b.data && a.first == b.first;
}

}  // namespace rehearse::fakes
