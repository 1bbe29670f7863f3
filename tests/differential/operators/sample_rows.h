// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/function_schema.h>
#include <c10/core/ScalarType.h>

namespace rehearse_test::differential {

using Sizes = std::vector<std::int64_t>;

// Placeholders for sizes in the rows.
inline constexpr std::int64_t kN = -1, kTwoMore = -2;  // the varying size, and that size plus 2

// The tables in which Choice::shapes and Choice::dtypes select a row. A row has an item for an operator's first tensor,
// one for the second, and so on. The last item is also for all further tensors.
const std::vector<std::vector<Sizes>>& sample_shapes();
const std::vector<std::vector<c10::ScalarType>>& sample_dtypes();

// Returns whether the operator stays within its arguments' memory with this row of shapes.
bool fits(const c10::FunctionSchema& schema, int shapes);

}  // namespace rehearse_test::differential
