// SPDX-License-Identifier: BSD-3-Clause
// Rules for reductions. Results are contiguous.
#include <cstddef>

#include <ATen/Context.h>

#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct ArgumentIndices {
  std::size_t dims = kNone, keepdim = kNone, dtype = kNone;
  bool no_dims_is_all = true;  // an empty list of dimensions reduces all of them, else none
};

enum class Gives { Same, Sum, Bool, Index, Real, Floating };

c10::ScalarType given_dtype(Gives gives, c10::ScalarType self) {
  switch (gives) {
    case Gives::Sum:
      return c10::isIntegralType(self, true) ? c10::kLong : self;
    case Gives::Bool:
      return self == c10::kByte ? c10::kByte : c10::kBool;
    case Gives::Index:
      return c10::kLong;
    case Gives::Real:
      return c10::toRealValueType(self);
    case Gives::Floating:
      return c10::isIntegralType(self, true) ? at::get_default_dtype_as_scalartype() : self;
    case Gives::Same:
      break;
  }
  return self;
}

std::vector<bool> reduced(const Call& call, const ArgumentIndices& indices) {
  const std::int64_t dimensions = call.tensor(0).dim();
  const std::size_t index = indices.dims;
  std::vector<std::int64_t> dims;
  bool all = true;
  if (index != kNone && call.arguments[index].isInt()) dims = {call.integer(index)};
  if (index != kNone && call.arguments[index].isIntList()) {
    dims = call.integers(index);
    all = indices.no_dims_is_all;
  }
  std::vector<bool> is_reduced(static_cast<std::size_t>(dimensions), all && dims.empty());
  for (const std::int64_t dim : dims) {
    const std::size_t at = wrap(dim, dimensions);
    if (dimensions > 0) is_reduced[at] = true;
  }
  return is_reduced;
}

SymInts reduced_sizes(const Call& call, const ArgumentIndices& indices) {
  const bool keep = indices.keepdim != kNone && call.boolean(indices.keepdim);
  const std::vector<bool> is_reduced = reduced(call, indices);
  SymInts sizes;
  for (std::size_t d = 0; d < is_reduced.size(); ++d) {
    if (!is_reduced[d]) sizes.push_back(call.tensor(0).sym_sizes()[d]);
    if (is_reduced[d] && keep) sizes.emplace_back(1);
  }
  return sizes;
}

// Makes one result for each element of `gives`, which selects the result's dtype.
template <ArgumentIndices indices, Gives... gives>
Outputs reduce(const Call& call) {
  const c10::ScalarType self = call.tensor(0).scalar_type();
  const SymInts sizes = reduced_sizes(call, indices);
  const auto dtype = [&](Gives one) {
    const c10::ScalarType usual = given_dtype(one, self);
    return indices.dtype == kNone ? usual : call.dtype_or(indices.dtype, usual);
  };
  return {result(call, sizes, dtype(gives))...};
}

// isin.Scalar_Tensor(element, test_elements, ...). LibTorch's Meta kernel says that the result has the size 0.
Outputs is_in(const Call& call) { return {result(call, SymInts{}, c10::kBool)}; }
Outputs is_in_out(const Call& call) { return {view_of(call.tensor(call.facts.written.front()), {}, {})}; }

constexpr ArgumentIndices kAll{}, kAllDtype{kNone, kNone, 1}, kDims{1, 2}, kDimsDtype{1, 2, 3};
constexpr ArgumentIndices kDimsOrNone{1, 2, kNone, false};
constexpr ArgumentIndices kCorrection{1, 3}, kDimsSecond{2, 3}, kDimsSecondDtype{2, 3, 4};

constexpr std::pair<const std::string_view, Rule> kReductionRules[] = {
    {"aten::sum", reduce<kAllDtype, Gives::Sum>},
    {"aten::sum.dim_IntList", reduce<kDimsDtype, Gives::Sum>},
    {"aten::nansum", reduce<kDimsDtype, Gives::Sum>},
    {"aten::prod", reduce<kAllDtype, Gives::Sum>},
    {"aten::prod.dim_int", reduce<kDimsDtype, Gives::Sum>},
    {"aten::mean", reduce<kAllDtype, Gives::Same>},
    {"aten::mean.dim", reduce<kDimsDtype, Gives::Same>},
    {"aten::amax", reduce<kDims, Gives::Same>},
    {"aten::amin", reduce<kDims, Gives::Same>},
    {"aten::aminmax", reduce<kDims, Gives::Same, Gives::Same>},
    {"aten::max", reduce<kAll, Gives::Same>},
    {"aten::min", reduce<kAll, Gives::Same>},
    {"aten::median", reduce<kAll, Gives::Same>},
    {"aten::max.dim", reduce<kDims, Gives::Same, Gives::Index>},
    {"aten::min.dim", reduce<kDims, Gives::Same, Gives::Index>},
    {"aten::median.dim", reduce<kDims, Gives::Same, Gives::Index>},
    {"aten::mode", reduce<kDims, Gives::Same, Gives::Index>},
    {"aten::kthvalue", reduce<kDimsSecond, Gives::Same, Gives::Index>},
    {"aten::argmax", reduce<kDims, Gives::Index>},
    {"aten::argmin", reduce<kDims, Gives::Index>},
    {"aten::any", reduce<kAll, Gives::Bool>},
    {"aten::any.dim", reduce<kDims, Gives::Bool>},
    {"aten::any.dims", reduce<kDimsOrNone, Gives::Bool>},
    {"aten::all", reduce<kAll, Gives::Bool>},
    {"aten::all.dim", reduce<kDims, Gives::Bool>},
    {"aten::all.dims", reduce<kDimsOrNone, Gives::Bool>},
    {"aten::var.correction", reduce<kCorrection, Gives::Real>},
    {"aten::std.correction", reduce<kCorrection, Gives::Real>},
    {"aten::var_mean.correction", reduce<kCorrection, Gives::Real, Gives::Same>},
    {"aten::std_mean.correction", reduce<kCorrection, Gives::Real, Gives::Same>},
    {"aten::logsumexp", reduce<kDims, Gives::Floating>},
    {"aten::norm.Scalar", reduce<kAll, Gives::Real>},
    {"aten::norm.ScalarOpt_dtype", reduce<ArgumentIndices{kNone, kNone, 2}, Gives::Real>},
    {"aten::norm.ScalarOpt_dim", reduce<kDimsSecond, Gives::Real>},
    {"aten::norm.ScalarOpt_dim_dtype", reduce<kDimsSecondDtype, Gives::Real>},
    {"aten::isin.Scalar_Tensor", is_in},
    {"aten::isin.Scalar_Tensor_out", is_in_out},
    {"aten::linalg_vector_norm", reduce<kDimsSecondDtype, Gives::Real>},
};

}  // namespace

RuleTable reduction_rules() { return kReductionRules; }

}  // namespace rehearse::capture
