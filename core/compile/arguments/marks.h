// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/compile/leaf.h>

#include "compile/arguments/dynamism.h"

namespace rehearse::compiler {

struct Mark {
  std::size_t dimension = 0;
  bool dynamic = false;  // else static
};

// The marks that mark_dynamic() and mark_static() set on this tensor in the calling fiber.
std::vector<Mark> marks_of(const at::Tensor& tensor);

// Passes the marks on a call's tensors to `dynamism`.
void absorb_marks(const LeafList& leaves, const std::vector<std::string>& sources, Dynamism& dynamism);

}  // namespace rehearse::compiler
