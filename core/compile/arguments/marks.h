// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::compiler {

struct Mark {
  std::size_t dimension = 0;
  bool dynamic = false;  // else static
};

// What mark_dynamic() and mark_static() were told of this tensor in the calling fiber.
std::vector<Mark> marks_of(const at::Tensor& tensor);

}  // namespace rehearse::compiler
