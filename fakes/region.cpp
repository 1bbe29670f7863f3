// SPDX-License-Identifier: BSD-3-Clause
#include "region.h"

#include <algorithm>
#include <functional>

#include <c10/util/SmallVector.h>

namespace rehearse::fakes {
namespace {

template <std::size_t Bytes>
struct Moved {
  static void copy(std::byte* to, const std::byte* from, std::size_t) { std::memcpy(to, from, Bytes); }
};

template <>
struct Moved<0> {  // all other sizes
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
};

// Walks the elements [first, first + count) of a strided tensor in logical order, one row of the innermost dimension at
// a time: `row(address of the row's first element, stride in bytes, length)`.
template <class Row>
void for_rows(const Region& region, std::int64_t count, std::size_t element_bytes, const Row& row) {
  const auto sizes = region.layout->sizes();
  const auto strides = region.layout->strides();
  const auto dims = static_cast<std::int64_t>(sizes.size());
  if (count == 0 || dims == 0) {
    if (count > 0) row(region.data, std::int64_t{0}, std::int64_t{1});
    return;
  }
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  c10::SmallVector<std::int64_t, 8> at(sizes.size());
  std::int64_t rest = region.first;
  std::int64_t offset = 0;
  for (std::int64_t d = dims - 1; d >= 0; --d) {
    at[d] = rest % sizes[d];
    rest /= sizes[d];
    offset += at[d] * strides[d];
  }
  const std::int64_t inner = dims - 1;
  for (;;) {
    const std::int64_t length = std::min(count, sizes[inner] - at[inner]);
    row(region.data + offset * bytes, strides[inner] * bytes, length);
    count -= length;
    if (count == 0) return;
    offset -= at[inner] * strides[inner];
    at[inner] = 0;
    for (std::int64_t d = inner - 1; d >= 0; --d) {
      offset += strides[d];
      if (++at[d] < sizes[d]) break;
      offset -= sizes[d] * strides[d];
      at[d] = 0;
    }
  }
}

template <std::size_t Bytes>
void gather_elements(std::byte* to, const Region& region, std::int64_t count, std::size_t bytes) {
  for_rows(region, count, bytes, [&](const std::byte* from, std::int64_t stride, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i, from += stride, to += bytes) Moved<Bytes>::copy(to, from, bytes);
  });
}

template <std::size_t Bytes>
void scatter_elements(const Region& region, const std::byte* from, std::int64_t count, std::size_t bytes) {
  for_rows(region, count, bytes, [&](std::byte* to, std::int64_t stride, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i, to += stride, from += bytes) Moved<Bytes>::copy(to, from, bytes);
  });
}

}  // namespace

Region read_region(const c10::TensorImpl& tensor) {
  return {static_cast<std::byte*>(const_cast<void*>(tensor.data())), tensor.is_contiguous() ? nullptr : &tensor, 0};
}

Region write_region(c10::TensorImpl& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data()), tensor.is_contiguous() ? nullptr : &tensor, 0};
}

void gather(std::byte* to, const Region& region, std::int64_t count, std::size_t element_bytes) {
  if (is_contiguous(region)) {
    if (count > 0) std::memcpy(to, address(region, element_bytes), static_cast<std::size_t>(count) * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1:
      return gather_elements<1>(to, region, count, 1);
    case 2:
      return gather_elements<2>(to, region, count, 2);
    case 4:
      return gather_elements<4>(to, region, count, 4);
    case 8:
      return gather_elements<8>(to, region, count, 8);
    case 16:
      return gather_elements<16>(to, region, count, 16);
    default:
      return gather_elements<0>(to, region, count, element_bytes);
  }
}

void scatter(const Region& region, const std::byte* from, std::int64_t count, std::size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return scatter_elements<1>(region, from, count, 1);
    case 2:
      return scatter_elements<2>(region, from, count, 2);
    case 4:
      return scatter_elements<4>(region, from, count, 4);
    case 8:
      return scatter_elements<8>(region, from, count, 8);
    case 16:
      return scatter_elements<16>(region, from, count, 16);
    default:
      return scatter_elements<0>(region, from, count, element_bytes);
  }
}

Extent extent(const Region& region, std::int64_t count, std::size_t element_bytes) {
  if (is_contiguous(region)) {
    const std::byte* const begin = address(region, element_bytes);
    return {begin, begin + static_cast<std::size_t>(count) * element_bytes};
  }
  const auto sizes = region.layout->sizes();
  const auto strides = region.layout->strides();
  std::int64_t last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  return {region.data, region.data + (static_cast<std::size_t>(last) + 1) * element_bytes};
}

bool may_overlap(const Region& a, std::int64_t a_count, const Region& b, std::int64_t b_count,
                 std::size_t element_bytes) {
  if (a_count == 0 || b_count == 0) return false;
  const auto [a_begin, a_end] = extent(a, a_count, element_bytes);
  const auto [b_begin, b_end] = extent(b, b_count, element_bytes);
  return std::less<>{}(a_begin, b_end) && std::less<>{}(b_begin, a_end);
}

}  // namespace rehearse::fakes
