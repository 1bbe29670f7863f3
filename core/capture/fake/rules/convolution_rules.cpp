// SPDX-License-Identifier: BSD-3-Clause
// Rules for convolutions of any number of dimensions, transposed or not, and their backwards.
#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

using c10::MemoryFormat;

// CPU kernels compute in channels_last if input or weight has that layout.
MemoryFormat convolution_format(const at::Tensor& input, const at::Tensor& weight) {
  const MemoryFormat of_input = suggested_format(input);
  return of_input == MemoryFormat::Contiguous ? suggested_format(weight) : of_input;
}

// One number for each spatial dimension; a single number stands for all.
SymInts for_each_dimension(SymInts values, std::size_t dimensions) {
  if (values.size() == 1 && dimensions > 1) values.assign(dimensions, values.front());
  return values;
}

struct Geometry {
  SymInts stride, padding, dilation, output_padding;
  bool transposed;
  c10::SymInt groups;
};

// Reads the arguments stride, padding, dilation, transposed, output_padding, groups, beginning at index `first`.
Geometry geometry_of(const Call& call, std::size_t first, std::size_t dimensions) {
  const auto values = [&](std::size_t i) { return for_each_dimension(call.sym_ints(i), dimensions); };
  return {values(first),     values(first + 1),       values(first + 2),
          values(first + 4), call.boolean(first + 3), call.sym_int(first + 5)};
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Outputs convolution(const Call& call) {
  const at::Tensor& input = call.tensor(0);
  const at::Tensor& weight = call.tensor(1);
  const std::size_t space = static_cast<std::size_t>(weight.dim()) - 2;
  const Geometry g = geometry_of(call, 3, space);
  const bool batched = input.dim() == weight.dim();
  const std::size_t first = batched ? 2 : 1;
  const c10::SymInt in_channels = g.transposed ? weight.sym_size(0) : weight.sym_size(1) * g.groups;
  TORCH_SYM_CHECK(input.sym_sizes()[first - 1].sym_eq(in_channels), "convolution: the input has ",
                  input.sym_sizes()[first - 1], " channels, the weight wants ", in_channels);
  SymInts sizes;
  if (batched) sizes.push_back(input.sym_size(0));
  sizes.push_back(g.transposed ? weight.sym_size(1) * g.groups : weight.sym_size(0));
  for (std::size_t d = 0; d < space; ++d) {
    const c10::SymInt& in = input.sym_sizes()[d + first];
    const c10::SymInt kernel = g.dilation[d] * (weight.sym_sizes()[d + 2] - 1) + 1;
    sizes.push_back(g.transposed ? (in - 1) * g.stride[d] - 2 * g.padding[d] + kernel + g.output_padding[d]
                                 : (in + 2 * g.padding[d] - kernel) / g.stride[d] + 1);
  }
  const bool is_empty = is_known(input.sym_numel().sym_eq(0));
  // Kernels return a contiguous result for an empty input, and for one without a batch dimension.
  const MemoryFormat format = batched && !is_empty ? convolution_format(input, weight) : MemoryFormat::Contiguous;
  return {result(call, std::move(sizes), input.scalar_type(), format)};
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, ..., groups, output_mask)
Outputs convolution_backward(const Call& call) {
  const at::Tensor& input = call.tensor(1);
  const at::Tensor& weight = call.tensor(2);
  const auto mask = call.arguments[10].toBoolList();
  const MemoryFormat format = convolution_format(input, weight);
  Outputs outputs(3);
  if (mask[0]) outputs[0] = result_like(call, input, input.scalar_type(), format);
  if (mask[1]) outputs[1] = result_like(call, weight, weight.scalar_type(), format);
  if (mask[2]) {
    const c10::SymInt channels = call.boolean(7) ? weight.sym_size(1) * call.sym_int(9) : weight.sym_size(0);
    outputs[2] = result(call, SymInts{channels}, weight.scalar_type());
  }
  return outputs;
}

constexpr std::pair<const std::string_view, Rule> kConvolutionRules[] = {
    {"aten::convolution", convolution},
    {"aten::convolution_backward", convolution_backward},
};

}  // namespace

RuleTable convolution_rules() { return kConvolutionRules; }

}  // namespace rehearse::capture
