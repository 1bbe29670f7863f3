// SPDX-License-Identifier: BSD-3-Clause
#include "differential/operators/sample_rows.h"

#include <algorithm>
#include <map>
#include <string>

#include <ATen/ATen.h>

namespace rehearse_test::differential {
namespace {

const std::vector<std::vector<Sizes>> kShapes = {
    {{kN, 4}},
    {{kN}},
    {{kN, kN}},
    {{2, kN, 4}},
    {{2, 3, kN, 4}},
    {{}},
    {{kN, 4}, {4, kN}, {kN, kN}},
    {{2, kN, 4}, {2, 4, kN}, {2, kN, kN}},
    {{kN, 4}, {4}, {kN}},
    {{kN, 4}, {kN}, {4}},
    {{kN, 4}, {4}, {4}},
    {{kN, 4}, {5, 4}, {5}},
    {{5, 4}, {kN}, {kN}},
    {{2, 4, kN}, {4}, {4}},
    {{2, 4, kN, 4}, {4}, {4}},
    {{2, 3, kTwoMore}, {4, 3, 2}, {4}},
    {{2, 3, kTwoMore, 6}, {4, 3, 2, 2}, {4}},
    {{1, 2, kTwoMore, 6, 5}, {3, 2, 2, 2, 2}, {3}},
    {{2, 3, kTwoMore, 6}, {3, 4, 2, 2}, {4}},
    {{1, 2, 3, kN, 4}},
    {{kN}, {}, {}},
    {{kN, 4}, {}, {}},
    {{2, 2, kN, 4}, {2, 2, kN, 4}, {2, 2, kN, 4}},
    {{kN, 4}, {3}, {3}},
    {{kN}, {kN, kN}, {kN}},
    {{kN, kN}, {kN, 4}, {kN, 4}},
    {{kN, kN}, {kN}, {kN, kN}},
    {{kN, 4}, {kN, 1}, {kN, 1}},
    {{2, kN, 5}, {2, kN, 4}, {2, 4, 5}},
    {{kN, 5}, {2, kN, 4}, {2, 4, 5}},
    {{kN, 4}, {kN, 4}, {5, 4, 4}, {5}},
    {{2, 3, kN, 4}, {2, kN, 4, 2}},
    {{1, 2, kN, 4, 4}, {1, kN, 3, 4, 3}},
    {{kN, 3}, {kN, 3}},
    {{kN, 4}, {kN, 5}, {15, 4}, {15, 5}, {15}},
    {{kN, 4}, {kN, 5}, {5, 4}, {5, 5}, {5}},
    {{2, 3, kTwoMore}, {3, 4, 2}, {4}},
    {{1, 2, kTwoMore, 6, 5}, {2, 3, 2, 2, 2}, {3}},
    {{5, 4}, {kN}, {2}},
    {{kTwoMore, 2, 3}, {2, 3, 4}, {4}},
    {{kN, 4}, {kN, 4}, {kN}},
    {{kN, kN}, {kN, kN}, {kN}},
    {{kN, kN}, {kN}, {kN, 4}},
};

// Operators that read beyond their arguments if shapes do not fit, with the rows above that do fit. A name without an
// overload means all its overloads.
const std::map<std::string, std::vector<int>> kFitting = {
    {"aten::_weight_norm", {27}},
    {"aten::_weight_norm_interface", {27}},
    {"aten::_weight_norm_interface_backward", {}},
    {"aten::_cdist_backward", {}},
    {"aten::_pdist_backward", {}},
    {"aten::_cholesky_solve_helper", {2}},
    {"aten::_native_batch_norm_legit", {10, 13, 14}},
    {"aten::_native_batch_norm_legit_functional", {10, 13, 14}},
    {"aten::_native_batch_norm_legit_no_training", {10, 13, 14}},
    {"aten::set_.source_Tensor_storage_offset", {}},
    {"aten::slow_conv_transpose3d", {37}},
};

const std::vector<std::vector<c10::ScalarType>> kDtypes = {
    {at::kDouble},
    {at::kLong},
    {at::kBool},
    {at::kDouble, at::kLong},
    {at::kDouble, at::kLong, at::kDouble},
    {at::kDouble, at::kBool},
    {at::kDouble, at::kBool, at::kDouble},
    {at::kLong, at::kDouble},
    {at::kBool, at::kDouble},
    {at::kComplexDouble},
    {at::kFloat},
    {at::kDouble, at::kDouble, at::kLong},
    {at::kDouble, at::kDouble, at::kBool},
    {at::kByte},
    {at::kDouble, at::kLong, at::kLong},
    {at::kDouble, at::kDouble, at::kInt},
};

}  // namespace

const std::vector<std::vector<Sizes>>& sample_shapes() { return kShapes; }

const std::vector<std::vector<c10::ScalarType>>& sample_dtypes() { return kDtypes; }

bool fits(const c10::FunctionSchema& schema, int shapes) {
  for (const std::string& name : {schema.name(), c10::toString(schema.operator_name())}) {
    const auto fitting = kFitting.find(name);
    if (fitting == kFitting.end()) continue;
    return std::count(fitting->second.begin(), fitting->second.end(), shapes) > 0;
  }
  return true;
}

}  // namespace rehearse_test::differential
