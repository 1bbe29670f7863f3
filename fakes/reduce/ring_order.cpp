// SPDX-License-Identifier: BSD-3-Clause
#include "reduce/ring_order.h"

#include <algorithm>

namespace rehearse::fakes {
namespace {

constexpr std::int64_t kMaxSegmentBytes = 1 << 20;

std::int64_t divided_up(std::int64_t number, std::int64_t by) noexcept { return (number + by - 1) / by; }
std::int64_t rounded_up(std::int64_t number, std::int64_t to) noexcept { return divided_up(number, to) * to; }

// Every rank's chunk has the same number of segments, at least two.
std::int64_t segments_of(std::int64_t wanted, int ranks) noexcept {
  return rounded_up(std::max(wanted, std::int64_t{2} * ranks), ranks);
}

// An empty tensor has no chunks; any length will do.
std::int64_t chunk_of(std::int64_t segments, std::int64_t segment_bytes, std::int64_t width, int ranks) noexcept {
  return std::max<std::int64_t>(segments / ranks * (segment_bytes / width), 1);
}

}  // namespace

RingOrder RingOrder::of_allreduce(std::int64_t elements, std::size_t element_bytes, int ranks) noexcept {
  const auto width = static_cast<std::int64_t>(element_bytes);
  const std::int64_t bytes = elements * width;
  const std::int64_t segments = segments_of(divided_up(bytes, kMaxSegmentBytes), ranks);
  return RingOrder(chunk_of(segments, rounded_up(divided_up(bytes, segments), width), width, ranks));
}

RingOrder RingOrder::of_reduce(std::int64_t elements, std::size_t element_bytes, int ranks) noexcept {
  const auto width = static_cast<std::int64_t>(element_bytes);
  const std::int64_t bytes = elements * width;
  const std::int64_t segment =
      std::max(width, rounded_up(std::min(divided_up(bytes, std::int64_t{2} * ranks), kMaxSegmentBytes), width));
  return RingOrder(chunk_of(segments_of(divided_up(bytes, segment), ranks), segment, width, ranks));
}

}  // namespace rehearse::fakes
