// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse {

// Parameters and buffers with their names, as from Module::named_parameters() and named_buffers().
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Some rows of a tensor: the part that one rank saves.
struct SavedRows {
  std::string name;                 // name of the parameter or buffer
  std::vector<std::int64_t> sizes;  // sizes of the whole tensor
  std::int64_t first_row = 0;
  at::Tensor rows;  // for a buffer or an ignored parameter: the whole tensor
};

}  // namespace rehearse
