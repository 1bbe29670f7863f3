// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::fakes {

// The order in which Gloo's ring combines the ranks' elements. Gloo cuts a tensor into one chunk for each rank. Chunk c
// starts as the elements of rank c - 1 and travels down the ranks, around the ring, to rank c. Each rank on the way
// combines its own elements with those that arrive: x[c] op (x[c + 1] op (... op x[c - 1])).
class RingOrder {
 public:
  static RingOrder of_allreduce(std::int64_t elements, std::size_t element_bytes, int ranks) noexcept;
  static RingOrder of_reduce(std::int64_t elements, std::size_t element_bytes, int ranks) noexcept;

  // The rank that combines an element last.
  int last_rank(std::int64_t element) const noexcept { return static_cast<int>(element / chunk_); }

  // The first element after `element` that the ranks combine in another order.
  std::int64_t end_of_chunk(std::int64_t element) const noexcept { return (element / chunk_ + 1) * chunk_; }

 private:
  explicit RingOrder(std::int64_t chunk) noexcept : chunk_(chunk) {}

  std::int64_t chunk_;  // in elements
};

}  // namespace rehearse::fakes
