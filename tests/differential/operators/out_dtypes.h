// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

namespace rehearse_test::differential {

// Returns the dtypes of the tensors for each `out` argument. To find them, calls the variant of the operator that has
// no `out` arguments and returns its results. Returns nothing if there is no such variant. Throws the variant's
// exceptions.
std::optional<std::vector<std::vector<c10::ScalarType>>> out_dtypes(const c10::FunctionSchema& schema,
                                                                    const torch::jit::Stack& arguments);

}  // namespace rehearse_test::differential
