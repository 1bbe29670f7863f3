// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace rehearse {

// Marks a size of a tensor as varying, like torch._dynamo.mark_dynamic: compiled functions that get this tensor treat
// the size as a symbol from the first call on (0 and 1 stay constants). Call it before you pass the tensor. If the code
// fixes the size, compiling throws compiler::CompileError. Applies to this tensor object in the calling fiber. Throws
// std::out_of_range if the tensor does not have the dimension; negative dimensions count from the end.
void mark_dynamic(const at::Tensor& tensor, std::int64_t dimension);

// Marks a size of a tensor as constant: each value of the size is compiled separately. A mark_dynamic() of the same
// size takes precedence.
void mark_static(const at::Tensor& tensor, std::int64_t dimension);

}  // namespace rehearse
