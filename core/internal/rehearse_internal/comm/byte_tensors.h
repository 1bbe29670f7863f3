// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

// Texts as tensors of bytes, for collectives that carry them.
namespace rehearse::comm {

// `text` and zeros behind it, `size` bytes in all.
inline at::Tensor bytes_of(std::string_view text, std::int64_t size) {
  auto bytes = at::zeros({size}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

// The memory of a contiguous tensor of the CPU; valid as long as that is.
inline std::string_view bytes_in(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace rehearse::comm
