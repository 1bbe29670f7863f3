// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

// Texts as tensors of bytes, for collectives.
namespace rehearse::comm {

// `text` padded with zeros to `size` bytes.
inline at::Tensor bytes_of(std::string_view text, std::int64_t size) {
  auto bytes = at::zeros({size}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

// The memory of a contiguous CPU tensor; valid as long as the tensor.
inline std::string_view bytes_in(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

inline std::string text_in(const at::Tensor& tensor, std::int64_t size) {
  return std::string(bytes_in(tensor).substr(0, static_cast<std::size_t>(size)));
}

// The texts of a gather: the first sizes[i] bytes of each tensor.
inline std::vector<std::string> texts_in(const std::vector<at::Tensor>& tensors,
                                         const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < sizes.size(); ++i) texts.push_back(text_in(tensors.at(i), sizes[i]));
  return texts;
}

}  // namespace rehearse::comm
