// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::sim {

struct ByteSpan {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;

  bool empty() const noexcept { return begin == end; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
};

bool overlap(const ByteSpan& a, const ByteSpan& b) noexcept;

// The bounds of a tensor's elements in memory; see Footprint.
ByteSpan bounds_of(const at::Tensor& tensor);

// The bytes that a tensor's elements occupy at this moment. Empty if there are none: the tensor is undefined, has no
// elements, or has no plain storage on the CPU.
class Footprint {
 public:
  Footprint() = default;
  explicit Footprint(const at::Tensor& tensor);

  bool empty() const noexcept { return bounds_.empty(); }

  // From the first byte to the end of the last one. Other tensors may own bytes in between.
  const ByteSpan& bounds() const noexcept { return bounds_; }

  // The runs of bytes without gaps, sorted by address. Empty if there are more than 65,536 runs, too many to compare.
  // Valid as long as this footprint exists.
  std::span<const ByteSpan> runs() const noexcept {
    if (runs_ != nullptr) return *runs_;
    return {&bounds_, empty() ? std::size_t{0} : std::size_t{1}};
  }

 private:
  ByteSpan bounds_;
  std::shared_ptr<const std::vector<ByteSpan>> runs_;  // null: a single run, the bounds
};

// True if the two footprints have a byte in common. If one of the two has more than 65,536 runs of bytes, returns false
// without a comparison, which would take too long.
bool overlap(const Footprint& a, const Footprint& b) noexcept;

// How many of these bytes the process can read before the first byte that is unmapped or protected. Asks the kernel,
// which takes a tenth of a microsecond for each page. Returns the full size if the kernel or a sandbox does not allow
// the question.
std::size_t readable_bytes(const ByteSpan& bytes) noexcept;

}  // namespace rehearse::sim
