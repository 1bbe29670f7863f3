// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse {

// Parameters and buffers under their names, as Module::named_parameters() and named_buffers() have them.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Some rows of a tensor: what one rank saves of it.
struct SavedRows {
  std::string name;                 // of the parameter or buffer
  std::vector<std::int64_t> sizes;  // of the whole
  std::int64_t first_row = 0;
  at::Tensor rows;  // a buffer's: all of it
};

}  // namespace rehearse
