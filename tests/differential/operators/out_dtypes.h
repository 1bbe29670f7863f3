// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

namespace rehearse_test::differential {

// The dtypes of the tensors for each `out` argument. Calls the variant of the operator that returns its results, with
// `arguments`, and takes the dtypes of these results. Returns nothing if there is no such variant. Throws the variant's
// exceptions.
std::optional<std::vector<std::vector<c10::ScalarType>>> out_dtypes(const c10::FunctionSchema& schema,
                                                                    const torch::jit::Stack& arguments);

}  // namespace rehearse_test::differential
