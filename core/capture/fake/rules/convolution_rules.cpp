// SPDX-License-Identifier: BSD-3-Clause
// Rules for convolutions of any number of dimensions, transposed or not, and their backwards.
#include <algorithm>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <rehearse_internal/capture/fake_tensor.h>

#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

using c10::MemoryFormat;

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

bool is_above(const SymInts& values, const c10::SymInt& limit) {
  return std::ranges::any_of(values, [&](const c10::SymInt& value) { return holds(value.sym_gt(limit)); });
}

// True if LibTorch calls oneDNN. Its own kernels compute each group of channels alone, and know no channels_last_3d.
bool uses_onednn(c10::ScalarType dtype, const at::Tensor& input, const at::Tensor& weight, const Geometry& g) {
  if (dtype == at::kDouble || !at::globalContext().userEnabledMkldnn()) return false;
  for (std::size_t d = 0; g.transposed && d < g.stride.size(); ++d) {
    if (holds(g.output_padding[d].sym_ge(g.stride[d]))) return false;
  }
  if (dtype != at::kFloat) return true;
  const c10::SymInt& height = weight.sym_sizes()[static_cast<std::size_t>(weight.dim()) - 2];
  const c10::SymInt& width = weight.sym_sizes().back();
  const c10::SymInt& batch = input.sym_sizes()[0];
  if (at::get_num_threads() == 1 && holds(width.sym_eq(1)) && holds(height.sym_eq(1)) && !is_above(g.stride, 1) &&
      !is_above(g.dilation, 1) && !holds(batch.sym_ge(16))) {
    return false;
  }
  return holds(g.groups.sym_gt(1)) || (holds(width.sym_gt(3)) && holds(height.sym_gt(3))) || holds(batch.sym_gt(1)) ||
         holds(product(input.sym_sizes().slice(0, 4)).sym_gt(20480));
}

at::Tensor with_layout(SymInts sizes, SymInts strides) {
  return make_fake(TensorSpec{.sizes = std::move(sizes), .strides = std::move(strides)});
}

// Kernels see a convolution of one dimension as one of two dimensions, with a height of 1.
at::Tensor with_height(const at::Tensor& tensor) {
  SymInts sizes = tensor.sym_sizes().vec(), strides = tensor.sym_strides().vec();
  strides.insert(strides.end() - 1, sizes.back() * strides.back());
  sizes.insert(sizes.end() - 1, 1);
  return with_layout(std::move(sizes), std::move(strides));
}

// What tensor.contiguous(format) gives. A dimension of size 1 keeps its stride if nothing must be moved.
at::Tensor made_contiguous(const at::Tensor& tensor, MemoryFormat format) {
  if (holds(tensor.unsafeGetTensorImpl()->sym_is_contiguous(format))) return tensor;
  return with_layout(tensor.sym_sizes().vec(), strides_of(tensor.sym_sizes(), format));
}

// The part of a tensor that one group of channels has.
at::Tensor of_group(const at::Tensor& tensor, std::size_t dimension, const c10::SymInt& groups) {
  SymInts sizes = tensor.sym_sizes().vec();
  sizes[dimension] = sizes[dimension] / groups;
  const MemoryFormat format = suggested_format(tensor);
  return made_contiguous(with_layout(std::move(sizes), tensor.sym_strides().vec()), format);
}

// The layouts of the results of one convolution. LibTorch asks for suggested formats again at each step, and the
// answer may change from step to step if sizes are 1.
class ConvolutionLayouts {
 public:
  ConvolutionLayouts(const at::Tensor& input, const at::Tensor& weight, const Geometry& g)
      : is_flat_(weight.dim() == 3), groups_(g.groups) {
    at::Tensor x = is_flat_ ? with_height(made_contiguous(input, MemoryFormat::Contiguous)) : input;
    at::Tensor w = is_flat_ ? with_height(weight) : weight;
    format_ = weight_format_ = format_for(x, w);
    const bool is_grouped = !is_known(groups_.sym_eq(1));
    if (format_ == MemoryFormat::Contiguous && !is_grouped) return;
    const bool is_own = (is_grouped || w.dim() == 5) && !uses_onednn(input.scalar_type(), x, w, g);
    if (is_own && w.dim() == 5) {
      format_ = weight_format_ = MemoryFormat::Contiguous;
      return;
    }
    x = made_contiguous(x, format_);
    w = made_contiguous(w, format_);
    joins_groups_ = is_own;
    if (joins_groups_) {
      x = of_group(x, 1, groups_);
      w = of_group(w, 0, groups_);
    }
    format_ = weight_format_ = format_for(x, w);
    const bool is_plain = g.transposed || !is_above(g.dilation, 1);
    if (is_plain && suggested_format(w) != format_ && !uses_onednn(input.scalar_type(), x, w, g)) {
      weight_format_ = suggested_format(w);
    }
  }

  // Of the result and of the gradient of the input.
  SymInts strides(SymInts sizes) const { return strides(std::move(sizes), format_, 1); }
  SymInts strides_of_weight(SymInts sizes) const { return strides(std::move(sizes), weight_format_, 0); }

 private:
  static MemoryFormat format_for(const at::Tensor& input, const at::Tensor& weight) {
    const MemoryFormat of_input = suggested_format(input);
    return of_input == MemoryFormat::Contiguous ? suggested_format(weight) : of_input;
  }

  // LibTorch joins what it computes for the groups in this dimension.
  SymInts strides(SymInts sizes, MemoryFormat format, std::size_t dimension_of_groups) const {
    if (is_flat_) sizes.insert(sizes.end() - 1, 1);
    if (joins_groups_) {
      SymInts part = sizes;
      part[dimension_of_groups] = part[dimension_of_groups] / groups_;
      SymInts strides_of_part = strides_of(part, format);
      format = suggested_format(with_layout(std::move(part), std::move(strides_of_part)));
    }
    SymInts strides = strides_of(sizes, format);
    if (is_flat_) strides.erase(strides.end() - 2);
    return strides;
  }

  bool is_flat_;
  c10::SymInt groups_;
  bool joins_groups_ = false;
  MemoryFormat format_, weight_format_;
};

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
  if (!batched || is_empty) return {result(call, std::move(sizes), input.scalar_type())};
  SymInts strides = ConvolutionLayouts(input, weight, g).strides(sizes);
  return {result(call, Layout{std::move(sizes), std::move(strides)}, input.scalar_type())};
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, ..., groups, output_mask)
Outputs convolution_backward(const Call& call) {
  const at::Tensor& input = call.tensor(1);
  const at::Tensor& weight = call.tensor(2);
  const auto mask = call.arguments[10].toBoolList();
  const ConvolutionLayouts layouts(input, weight, geometry_of(call, 4, static_cast<std::size_t>(weight.dim()) - 2));
  const SymInts of_input = input.sym_sizes().vec(), of_weight = weight.sym_sizes().vec();
  Outputs outputs(3);
  if (mask[0]) outputs[0] = result(call, Layout{of_input, layouts.strides(of_input)}, input.scalar_type());
  if (mask[1]) outputs[1] = result(call, Layout{of_weight, layouts.strides_of_weight(of_weight)}, weight.scalar_type());
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
