// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace rehearse {

// Says of a tensor that is to be an argument of a compiled function: this size varies, and is a symbol from the first
// call on (0 and 1 stay themselves). Where the code fixes it all the same, compiling it is the error
// compiler::CompileError. What torch._dynamo.mark_dynamic does. Counts for this tensor object, in the calling fiber.
// Throws std::out_of_range for a dimension that the tensor does not have; negative ones count from the end.
void mark_dynamic(const at::Tensor& tensor, std::int64_t dimension);

// ... this size is never a symbol: each of its values is compiled. Gives way to mark_dynamic().
void mark_static(const at::Tensor& tensor, std::int64_t dimension);

}  // namespace rehearse
