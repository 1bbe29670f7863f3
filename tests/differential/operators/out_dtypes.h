// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

namespace rehearse_test::differential {

// For each `out` argument the dtypes of the tensors that it takes, as the variant of the operator that returns its
// results gives them for `arguments`. Nothing if there is no such variant. Throws what the variant throws.
std::optional<std::vector<std::vector<c10::ScalarType>>> out_dtypes(const c10::FunctionSchema& schema,
                                                                    const torch::jit::Stack& arguments);

}  // namespace rehearse_test::differential
