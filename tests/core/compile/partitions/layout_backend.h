// SPDX-License-Identifier: BSD-3-Clause
// A back end that changes the memory layout of its graphs' outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <rehearse/compile/backend.h>

namespace rehearse::test {

enum class OutputLayout {
  ChannelsLast,  // only for tensors of 4 dimensions
  Reversed,      // the first dimension is the innermost; only for tensors of at least 2 dimensions
  Padded,        // 2 unused elements before the first row, 1 between rows; only for tensors of at least 2 dimensions
};
enum class Statement { True, None, False };

// Compiles with another back end, and copies the outputs of its graphs into `layout`. Does not copy outputs whose
// layout is fixed, or whose number of dimensions does not fit `layout`. `statement` chooses which layouts LayoutBackend
// states: those of the copies (True), none (None), or those that the other back end states (False).
class LayoutBackend final : public compiler::Backend {
 public:
  LayoutBackend(OutputLayout layout, Statement statement, std::string inner = "aot_eager")
      : layout_(layout), statement_(statement), inner_(compiler::make_backend(inner)) {}

  std::string name() const override { return "layout"; }

  compiler::CompiledGraph compile(const compiler::BackendInput& input) override {
    names_.push_back(input.name);
    note_inputs(input);
    compiler::CompiledGraph inner = inner_->compile(input);
    std::vector<graph::ValueMeta> stated = *inner.outputs;
    std::vector<std::size_t> changed;
    for (std::size_t i = 0; i < stated.size(); ++i) {
      const graph::TensorMeta* meta = stated[i].tensor();
      const bool is_fixed = obeys && !input.fixed_layouts.empty() && input.fixed_layouts[i];
      if (meta == nullptr || is_fixed || !is_wanted(meta->sizes.size())) continue;
      changed.push_back(i);
      graph::TensorMeta other = *meta;
      set_strides(other);
      stated[i] = graph::ValueMeta(std::move(other));
    }
    const auto run = [inner, changed, layout = layout_](std::vector<c10::IValue> inputs) {
      std::vector<c10::IValue> outputs = inner(std::move(inputs));
      for (const std::size_t i : changed) outputs[i] = laid_out(outputs[i].toTensor(), layout);
      return outputs;
    };
    if (statement_ == Statement::None) return run;
    return {run, statement_ == Statement::True ? stated : *inner.outputs};
  }

  // The names of the graphs, in the order of their compilation.
  const std::vector<std::string>& names() const { return names_; }
  // The number of graph inputs, other than parameters, that had another layout when the graph was compiled than at
  // capture.
  std::size_t other_inputs() const { return other_inputs_; }

  bool obeys = true;  // false: also changes the outputs whose layouts BackendInput::fixed_layouts fixes

 private:
  bool is_wanted(std::size_t dimensions) const {
    return layout_ == OutputLayout::ChannelsLast ? dimensions == 4 : dimensions >= 2;
  }

  // The dimensions, innermost first.
  static std::vector<std::size_t> order(std::size_t dimensions, OutputLayout layout) {
    std::vector<std::size_t> order(dimensions);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (layout == OutputLayout::Padded) std::reverse(order.begin(), order.end());
    if (layout == OutputLayout::ChannelsLast) order = {1, 3, 2, 0};
    return order;
  }

  template <class Number>
  static std::vector<Number> strides_of(const std::vector<Number>& sizes, OutputLayout layout) {
    std::vector<Number> strides(sizes.size(), Number(0));
    Number stride(1);
    bool is_first = true;
    for (const std::size_t dimension : order(sizes.size(), layout)) {
      strides[dimension] = stride;
      const bool pads = std::exchange(is_first, false) && layout == OutputLayout::Padded;
      stride = stride * (pads ? sizes[dimension] + Number(1) : sizes[dimension]);
    }
    return strides;
  }

  void set_strides(graph::TensorMeta& meta) const {
    std::vector<shapes::Expr> sizes;
    for (const graph::SymInt& size : meta.sizes) {
      sizes.push_back(size.is_symbolic() ? *size.expression().expr() : shapes::Expr(size.number()));
    }
    meta.strides.clear();
    for (shapes::Expr& stride : strides_of(sizes, layout_)) meta.strides.emplace_back(std::move(stride));
    meta.storage_offset = layout_ == OutputLayout::Padded ? 2 : 0;
  }

  static at::Tensor laid_out(const at::Tensor& tensor, OutputLayout layout) {
    const std::vector<std::int64_t> strides = strides_of(tensor.sizes().vec(), layout);
    const std::int64_t offset = layout == OutputLayout::Padded ? 2 : 0;
    std::int64_t last = offset;
    for (std::size_t i = 0; i < strides.size(); ++i)
      last += strides[i] * std::max<std::int64_t>(tensor.sizes()[i] - 1, 0);
    at::Tensor place;
    {
      const at::AutoDispatchBelowADInplaceOrView no_view;
      place = at::zeros({last + 1}, tensor.options()).as_strided(tensor.sizes(), strides, offset);
    }
    {
      const at::AutoGradMode with_history(tensor.grad_fn() != nullptr);
      place.copy_(tensor);
    }
    // Without grad mode, a view has no history, but it requires a gradient if its base does. A copy of such a view must
    // require a gradient, too.
    if (tensor.requires_grad() && !place.requires_grad()) place.set_requires_grad(true);
    return place;
  }

  void note_inputs(const compiler::BackendInput& input) {
    const auto placeholders = input.module->graph().placeholders();
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      const graph::TensorMeta* meta = placeholders[i]->meta().tensor();
      if (meta == nullptr || meta->is_parameter || !input.example_inputs[i].isTensor()) continue;
      const auto strides = input.example_inputs[i].toTensor().sym_strides();
      bool same = true;
      for (std::size_t k = 0; k < strides.size(); ++k) {
        const auto number = strides[k].maybe_as_int();
        same = same && (!number || meta->strides[k].is_symbolic() || *number == meta->strides[k].number());
      }
      other_inputs_ += same ? 0 : 1;
    }
  }

  OutputLayout layout_;
  Statement statement_;
  std::shared_ptr<compiler::Backend> inner_;
  std::vector<std::string> names_;
  std::size_t other_inputs_ = 0;
};

}  // namespace rehearse::test
