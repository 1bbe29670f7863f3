// SPDX-License-Identifier: BSD-3-Clause
// Rules for softmax and for layer, batch and group normalisation, with their backwards, and for cumulative sums and
// products.
#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

using c10::MemoryFormat;

// _softmax(self, dim, half_to_float)
Outputs softmax(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  wrap(call.integer(1), self.dim());
  const c10::ScalarType dtype = call.boolean(2) ? c10::kFloat : self.scalar_type();
  return {result_like(call, self, dtype, MemoryFormat::Contiguous)};
}

// _safe_softmax(self, dim, dtype), for attention whose mask may exclude whole rows.
Outputs safe_softmax(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  wrap(call.integer(1), self.dim());
  return {result_like(call, self, call.dtype_or(2, self.scalar_type()), MemoryFormat::Contiguous)};
}

// _softmax_backward_data(grad_output, output, dim, input_dtype): input_dtype counts only for a softmax from half to
// float.
Outputs softmax_backward(const Call& call) {
  const c10::ScalarType gradient = call.tensor(0).scalar_type(), input = call.dtype_or(3, gradient);
  const bool half_to_float = gradient == c10::kFloat && input == c10::kHalf;
  return {result_like(call, call.tensor(0), half_to_float ? input : gradient, MemoryFormat::Contiguous)};
}

// cumsum(self, dim, dtype). Integers are summed in 64 bits.
Outputs cumulate(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  wrap(call.integer(1), self.dim());
  const bool integral = c10::isIntegralType(self.scalar_type(), true);
  const c10::ScalarType dtype = call.dtype_or(2, integral ? c10::kLong : self.scalar_type());
  return {result_like(call, self, dtype, MemoryFormat::Contiguous)};
}

// Kernels keep the statistics in the dtype of the weight or, without a weight, in the dtype of the input.
c10::ScalarType statistics_dtype(const Call& call, const at::Tensor& input, std::size_t weight) {
  return call.has(weight) ? call.tensor(weight).scalar_type() : input.scalar_type();
}

// native_layer_norm(input, normalized_shape, weight, bias, eps)
Outputs layer_norm(const Call& call) {
  const at::Tensor& input = call.tensor(0);
  const std::size_t normalised = call.sym_ints(1).size();
  const std::size_t kept = static_cast<std::size_t>(input.dim()) - normalised;
  SymInts statistics(static_cast<std::size_t>(input.dim()), c10::SymInt(1));
  const SymInts wanted = call.sym_ints(1);
  for (std::size_t d = 0; d < statistics.size(); ++d) {
    const c10::SymInt& size = input.sym_sizes()[d];
    if (d < kept) {
      statistics[d] = size;
    } else {
      TORCH_SYM_CHECK(size.sym_eq(wanted[d - kept]), "layer_norm: the input's sizes ", input.sym_sizes(),
                      " do not end in the normalised ones ", c10::SymIntArrayRef(wanted));
    }
  }
  const TensorSpec statistic = result(call, statistics, statistics_dtype(call, input, 2));
  return {result_like(call, input, input.scalar_type(), MemoryFormat::Contiguous), statistic, statistic};
}

Output wanted(bool mask, TensorSpec spec) { return mask ? Output(std::move(spec)) : Output(); }

Output gradient_of(const Call& call, bool mask, std::size_t parameter) {
  if (!mask || !call.has(parameter)) return {};
  const at::Tensor& of = call.tensor(parameter);
  return result_like(call, of, of.scalar_type(), MemoryFormat::Contiguous);
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
Outputs layer_norm_backward(const Call& call) {
  const at::Tensor& input = call.tensor(1);
  const auto mask = call.arguments[7].toBoolList();
  return {wanted(mask[0], result_like(call, input, input.scalar_type(), MemoryFormat::Contiguous)),
          gradient_of(call, mask[1], 5), gradient_of(call, mask[2], 6)};
}

// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps). It also updates the
// running statistics, although its schema does not annotate them.
Outputs batch_norm(const Call& call) {
  const at::Tensor& input = call.tensor(0);
  // In evaluation mode, kernels return empty statistics.
  const SymInts channels{call.boolean(5) ? input.sym_size(1) : c10::SymInt(0)};
  const TensorSpec statistic = result(call, channels, statistics_dtype(call, input, 1));
  return {result_like(call, input, input.scalar_type(), suggested_format(input)), statistic, statistic};
}

// _native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps)
Outputs batch_norm_without_statistics(const Call& call) {
  const at::Tensor& input = call.tensor(0);
  const SymInts channels{call.boolean(3) ? input.sym_size(1) : c10::SymInt(0)};
  const TensorSpec statistic = result(call, channels, statistics_dtype(call, input, 1));
  return {result_like(call, input, input.scalar_type(), suggested_format(input)), statistic, statistic};
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
// output_mask)
Outputs batch_norm_backward(const Call& call) {
  const at::Tensor& input = call.tensor(1);
  const auto mask = call.arguments[9].toBoolList();
  const TensorSpec parameter = result(call, SymInts{input.sym_size(1)}, statistics_dtype(call, input, 2));
  return {wanted(mask[0], result_like(call, input, input.scalar_type(), suggested_format(input))),
          wanted(mask[1], parameter), wanted(mask[2], parameter)};
}

// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
Outputs group_norm(const Call& call) {
  const at::Tensor& input = call.tensor(0);
  const TensorSpec statistic =
      result(call, SymInts{call.sym_int(3), call.integer(6)}, statistics_dtype(call, input, 1));
  return {result_like(call, input, input.scalar_type(), suggested_format(input)), statistic, statistic};
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
Outputs group_norm_backward(const Call& call) {
  const at::Tensor& input = call.tensor(1);
  const auto mask = call.arguments[9].toBoolList();
  const TensorSpec parameter = result(call, SymInts{call.sym_int(6)}, statistics_dtype(call, input, 4));
  return {wanted(mask[0], result_like(call, input, input.scalar_type(), suggested_format(input))),
          wanted(mask[1], parameter), wanted(mask[2], parameter)};
}

constexpr std::pair<const std::string_view, Rule> kNormaliseRules[] = {
    {"aten::_softmax", softmax},
    {"aten::_log_softmax", softmax},
    {"aten::_safe_softmax", safe_softmax},
    {"aten::_softmax_backward_data", softmax_backward},
    {"aten::_log_softmax_backward_data", softmax_backward},
    {"aten::cumsum", cumulate},
    {"aten::cumprod", cumulate},
    {"aten::native_layer_norm", layer_norm},
    {"aten::native_layer_norm_backward", layer_norm_backward},
    {"aten::native_batch_norm", batch_norm},
    {"aten::_native_batch_norm_legit", batch_norm},
    {"aten::_native_batch_norm_legit.no_stats", batch_norm_without_statistics},
    {"aten::native_batch_norm_backward", batch_norm_backward},
    {"aten::native_group_norm", group_norm},
    {"aten::native_group_norm_backward", group_norm_backward},
};

}  // namespace

RuleTable normalise_rules() { return kNormaliseRules; }

}  // namespace rehearse::capture
