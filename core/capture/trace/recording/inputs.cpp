// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/inputs.h"

#include <algorithm>
#include <utility>

#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/operators/storage_of.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::capture {
namespace {

std::size_t hooks_on(const at::Tensor& tensor) {
  const auto* autograd = torch::autograd::impl::get_autograd_meta(tensor);
  if (autograd == nullptr) return 0;
  const std::size_t listed = autograd->cpp_hooks_list_ ? autograd->cpp_hooks_list_->size() : 0;
  return autograd->hooks_.size() + listed + (autograd->post_acc_grad_hooks_ ? 1 : 0);
}

// Avoids LibTorch's warning about gradients of tensors that are no leaves.
at::Tensor gradient_of(const at::Tensor& tensor) {
  const auto* autograd = torch::autograd::impl::get_autograd_meta(tensor);
  return autograd == nullptr ? at::Tensor() : autograd->grad_;
}

// The strides of `real` with symbolic sizes. A stride becomes symbolic if it equals the size times the stride of the
// next inner dimension; other strides stay numbers.
std::vector<c10::SymInt> strides_like(const at::Tensor& real, const std::vector<c10::SymInt>& sizes) {
  const std::vector<std::int64_t> outer_first = outermost_first(real.strides());
  std::vector<c10::SymInt> strides(sizes.size());
  std::int64_t step = 1;
  c10::SymInt symbolic_step = 1;
  for (auto dim = outer_first.rbegin(); dim != outer_first.rend(); ++dim) {
    const auto at = static_cast<std::size_t>(*dim);
    const std::int64_t stride = real.stride(*dim);
    const bool follows = stride == step;
    strides[at] = follows ? symbolic_step : c10::SymInt(stride);
    step = stride * real.size(*dim);
    symbolic_step = strides[at] * sizes[at];
  }
  return strides;
}

std::optional<std::string> symbol_in(const c10::SymInt& size) {
  if (size.maybe_as_int()) return std::nullopt;
  const shapes::Expr expression = shapes::expr_of(size);
  return expression.is_symbol() ? std::optional(expression.symbol_name()) : std::nullopt;
}

void require_dense(const at::Tensor& real, const std::string& what, const exec::CallSite& where) {
  const std::string kind = kind_without_fakes(real);
  if (kind.empty()) return;
  throw NotCapturable(what + " is " + kind, "A graph holds dense tensors: convert it outside of the captured function.",
                      where);
}

}  // namespace

void TensorStates::note(const at::Tensor& tensor, const std::string& name) {
  if (!known_.insert(tensor.unsafeGetTensorImpl()).second) return;
  renew(states_.emplace_back(State{.tensor = tensor, .name = name}));
}

void TensorStates::renew(State& state) {
  state.requires_grad = state.tensor.requires_grad();
  state.gradient = gradient_of(state.tensor);
  state.hooks = hooks_on(state.tensor);
}

void TensorStates::renew() {
  for (State& state : states_) renew(state);
}

bool TensorStates::requires_grad_changed() const {
  return std::ranges::any_of(states_,
                             [](const State& state) { return state.tensor.requires_grad() != state.requires_grad; });
}

void TensorStates::restore() {
  for (State& state : states_) {
    if (state.tensor.requires_grad() != state.requires_grad && !torch::autograd::impl::grad_fn_unsafe(state.tensor)) {
      state.tensor.set_requires_grad(state.requires_grad);
    }
    if (!gradient_of(state.tensor).is_same(state.gradient)) state.tensor.mutable_grad() = state.gradient;
  }
}

void TensorStates::check() const {
  for (const State& state : states_) {
    if (hooks_on(state.tensor) != state.hooks) {
      throw NotCapturable("a hook was registered on '" + state.name + "' inside of a captured function",
                          "Register it once, outside of the captured function.", {});
    }
    if (state.tensor.requires_grad() != state.requires_grad) {
      throw NotCapturable("whether '" + state.name + "' requires grad was changed inside of a captured function",
                          "Change it outside of the captured function.", {});
    }
    if (!gradient_of(state.tensor).is_same(state.gradient)) {
      throw NotCapturable("the gradient of '" + state.name + "' was replaced inside of a captured function",
                          "Call zero_grad() and the like outside of the captured function.", {});
    }
    if (state.gradient.defined() && found_.contains(state.gradient.unsafeGetTensorImpl())) {
      throw NotCapturable("the gradient of '" + state.name + "' is used inside of a captured function",
                          "It may be another tensor in the next call: give it as an argument.", {});
    }
  }
}

Inputs::Inputs(GraphBuilder& graph, ExpressionNodes& symbols, ViewFamilies& families,
               std::vector<NamedTensor> of_module)
    : graph_(graph), symbols_(symbols), families_(families), named_(std::move(of_module)) {
  for (std::size_t i = 0; i < named_.size(); ++i) {
    named_at_.emplace(named_[i].tensor.unsafeGetTensorImpl(), i);
    states_.note(named_[i].tensor, named_[i].name);
  }
}

Inputs::Source& Inputs::add(GraphInput input, const at::Tensor& real, const at::Tensor& fake) {
  by_real_.emplace(real.unsafeGetTensorImpl(), sources_.size());
  by_id_.emplace(fake_id(fake), sources_.size());
  const auto [first, is_new] = bases_.emplace((real.is_view() ? real._base() : real).unsafeGetTensorImpl(), fake);
  if (!is_new) families_.join(fake, first->second);
  Source& source = sources_.emplace_back(Source{std::move(input), real, fake});
  source.requires_grad = real.requires_grad();
  states_.note(real, source.input.name);
  return source;
}

at::Tensor Inputs::add_tensor(FakeMode& mode, std::string source, const at::Tensor& real,
                              std::vector<c10::SymInt> sizes) {
  require_dense(real, "The argument " + source, graph_.site());
  const std::size_t index = tensors_++;
  if (named_at_.contains(real.unsafeGetTensorImpl())) return source_of(mode, real).fake;
  if (const auto found = by_real_.find(real.unsafeGetTensorImpl()); found != by_real_.end())
    return sources_[found->second].fake;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    const auto symbol = symbol_in(sizes[dim]);
    if (!symbol) continue;
    const std::string name = source + ".size(" + std::to_string(dim) + ")";
    symbols_of_inputs_.try_emplace(*symbol,
                                   GraphInput{GraphInput::Kind::Size, index, static_cast<std::int64_t>(dim), {}, name});
  }
  TensorSpec spec = spec_of(real);
  spec.strides = strides_like(real, sizes);
  spec.sizes = std::move(sizes);
  at::Tensor& of_storage = storages_[operators::storage_of(real)];
  at::Tensor fake = make_fake(spec, real.has_storage() ? of_storage : at::Tensor());
  mode.own(fake);
  if (!of_storage.defined()) of_storage = fake;
  add({GraphInput::Kind::Tensor, index, 0, {}, std::move(source)}, real, fake);
  return fake;
}

c10::SymInt Inputs::add_int(std::string source, c10::SymInt value) {
  const std::size_t index = ints_++;
  if (const auto symbol = symbol_in(value)) {
    symbols_of_inputs_.try_emplace(*symbol, GraphInput{GraphInput::Kind::Int, index, 0, {}, std::move(source)});
  }
  return value;
}

const Inputs::Source& Inputs::source_of(FakeMode& mode, const at::Tensor& real) {
  if (const auto found = by_real_.find(real.unsafeGetTensorImpl()); found != by_real_.end()) {
    Source& source = sources_[found->second];
    source.is_found_elsewhere = true;
    return source;
  }
  require_dense(real, "A tensor that the function uses", graph_.site());
  GraphInput input{GraphInput::Kind::Captured, 0, 0, real, "", GraphInput::Role::Constant};
  const auto named = named_at_.find(real.unsafeGetTensorImpl());
  const NamedTensor* known = named == named_at_.end() ? nullptr : &named_[named->second];
  if (known) {
    input.role = known->is_parameter ? GraphInput::Role::Parameter : GraphInput::Role::Buffer;
    input.name = known->name;
    input.index = 1 + named->second;
  } else {
    states_.note_found(real);
    input.name = "_tensor_constant" + std::to_string(constants_++);
  }
  Source& source = add(std::move(input), real, mode.fake_of(real));
  source.ddp_ignored = known != nullptr && known->ddp_ignored;
  source.is_parameter = known != nullptr && known->is_parameter;
  return source;
}

const std::string* Inputs::name_of(const at::Tensor& real) const {
  const auto found = named_at_.find(real.unsafeGetTensorImpl());
  return found == named_at_.end() ? nullptr : &named_[found->second].name;
}

Inputs::Source* Inputs::find(std::uint64_t fake_id) {
  const auto found = by_id_.find(fake_id);
  return found == by_id_.end() ? nullptr : &sources_[found->second];
}

at::Tensor Inputs::real_of(const at::Tensor& fake) const {
  const auto found = by_id_.find(fake_id(fake));
  if (found == by_id_.end()) return {};
  const Source& source = sources_[found->second];
  const bool stands = source.input.kind == GraphInput::Kind::Captured && source.fake.is_same(fake);
  return stands ? source.real : at::Tensor();
}

std::vector<at::Tensor> Inputs::found_arguments() const {
  std::vector<at::Tensor> arguments;
  for (const Source& source : sources_) {
    if (source.input.kind == GraphInput::Kind::Tensor && source.is_found_elsewhere) arguments.push_back(source.real);
  }
  return arguments;
}

void Inputs::place(const graph::Node& placeholder, const GraphInput& input) {
  index_of_.emplace(&placeholder, placed_.size());
  placed_.push_back(input);
}

const GraphInput* Inputs::placed_at(const graph::Node& placeholder) const {
  const auto found = index_of_.find(&placeholder);
  return found == index_of_.end() ? nullptr : &placed_[found->second];
}

graph::Node& Inputs::node_of(Source& source) {
  if (source.node) return *source.node;
  source.node = &graph_.placeholder(source.input.name);
  graph::TensorMeta meta = meta_of(source.fake);
  meta.is_parameter = source.is_parameter;
  meta.requires_grad = source.requires_grad;
  source.node->meta().set_value(std::move(meta));
  source.node->meta().ddp_ignored = source.ddp_ignored;
  place(*source.node, source.input);
  if (source.input.kind != GraphInput::Kind::Tensor) return *source.node;
  for (const c10::SymInt& size : source.fake.sym_sizes()) {
    const auto symbol = symbol_in(size);
    if (symbol && !symbols_.knows_symbol(*symbol)) node_of_symbol(*symbol);
  }
  return *source.node;
}

graph::Node& Inputs::node_of_symbol(const std::string& symbol) {
  const auto found = symbols_of_inputs_.find(symbol);
  if (found == symbols_of_inputs_.end()) {
    throw NotCapturable("the symbol " + symbol + " belongs to no input of this capture",
                        "Use sizes of tensors that this code was given.", graph_.site());
  }
  graph::Node& node = graph_.placeholder(symbol);
  symbols_.bind_symbol(symbol, node);
  place(node, found->second);
  return node;
}

}  // namespace rehearse::capture
