// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/recording.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/parallel/sharded_units.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/fake/call/tensors_in.h"
#include "graph/ir/targets.h"
#include "graph/text/enum_names.h"

namespace rehearse::capture {
namespace {

// FullyShardedDataParallel frees and refills this memory between operators, so its size during the capture means
// nothing.
void refuse_sharded(const at::Tensor& real, const exec::CallSite& where) {
  const auto* const units = parallel::ShardedUnits::current();
  const auto* const parameter = units != nullptr ? units->find(real.storage().unsafeGetStorageImpl()) : nullptr;
  if (parameter == nullptr) return;
  throw NotCapturable(fmt::format("the function asks for the storage of parameter \"{}\" of {}, which "
                                  "FullyShardedDataParallel frees and fills",
                                  parameter->name, units->text_of(parameter->unit)),
                      "Ask for its sizes.", where);
}

// True if the address lies in the static data of the program or of a loaded library.
bool is_static(const void* address) {
  Dl_info info = {};
  return dladdr(address, &info) != 0;
}

// True if a real tensor does not own its memory, as after from_blob() without a deleter. Such memory may be gone when
// the captured graph runs, although the tensor lives on. False for the memory of static variables and of devices.
bool has_passing_memory(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  const bool is_borrowed = memory.get() != nullptr && memory.get_context() == nullptr;
  return is_borrowed && tensor.device().is_cpu() && !is_static(memory.get());
}

}  // namespace

void ModeNodes::begin() {
  grad_enabled_ = outer_grad_enabled_ = at::GradMode::is_enabled();
  for (Device& device : devices_) device.outside = current(device.type);
}

void ModeNodes::sync() {
  if (grad_enabled_ != at::GradMode::is_enabled()) {
    grad_enabled_ = !grad_enabled_;
    graph_.call(std::string(graph::kSetGradEnabled), {grad_enabled_});
  }
  for (Device& device : devices_) sync(device);
}

void ModeNodes::leave() {
  for (Device& device : devices_) exit_until(device, 0);
  if (grad_enabled_ == outer_grad_enabled_) return;
  grad_enabled_ = outer_grad_enabled_;
  graph_.call(std::string(graph::kSetGradEnabled), {grad_enabled_});
}

bool ModeNodes::has_own_autocast() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const Device& device) { return current(device.type) != device.outside; });
}

ModeNodes::Autocast ModeNodes::current(c10::DeviceType type) {
  const bool enabled = at::autocast::is_autocast_enabled(type);
  // The dtype has no meaning while autocast is off.
  return {enabled, enabled ? at::autocast::get_autocast_dtype(type) : c10::ScalarType::Undefined};
}

void ModeNodes::sync(Device& device) {
  const Autocast now = current(device.type);
  auto& regions = device.regions;
  if (now == (regions.empty() ? device.outside : regions.back().state)) return;
  // If the new state is that of an outer region or of the caller, leaves the inner regions; else enters a new region.
  const auto outer =
      std::find_if(regions.rbegin(), regions.rend(), [&](const Region& region) { return region.state == now; });
  if (outer == regions.rend() && now != device.outside) {
    graph::Node& enter =
        graph_.call(std::string(graph::kEnterAutocast), {graph::name_of(c10::Device(device.type)),
                                                         now.enabled ? graph::Argument(now.dtype) : graph::Argument(),
                                                         now.enabled, at::autocast::is_autocast_cache_enabled()});
    regions.push_back({&enter, now});
    return;
  }
  exit_until(device, static_cast<std::size_t>(regions.rend() - outer));
}

void ModeNodes::exit_until(Device& device, std::size_t kept) {
  while (device.regions.size() > kept) {
    graph_.call(std::string(graph::kExitAutocast), {*device.regions.back().enter});
    device.regions.pop_back();
  }
}

bool StorageSizes::was_resized(const at::Tensor& fake) const {
  const auto* const storage = fake.storage().unsafeGetStorageImpl();
  return std::any_of(resized_.begin(), resized_.end(),
                     [&](const c10::Storage& each) { return each.unsafeGetStorageImpl() == storage; });
}

void StorageSizes::note_resized(const at::Tensor& fake) {
  if (!was_resized(fake)) resized_.push_back(fake.storage());
}

Inputs::Source* StorageSizes::source_with_storage(const at::Tensor& fake) {
  if (Inputs::Source* const own = inputs_.find(fake_id(fake))) return own;
  Inputs::Source* found = nullptr;
  inputs_.for_each([&](const at::Tensor& input, const at::Tensor&) {
    if (found == nullptr && share_storage(input, fake)) found = inputs_.find(fake_id(input));
  });
  return found;
}

c10::SymInt StorageSizes::bytes_of(const at::Tensor& fake, const exec::CallSite& where) {
  Inputs::Source* const source = was_resized(fake) ? nullptr : source_with_storage(fake);
  if (source == nullptr || source->input.is_made_inside || !source->real.has_storage()) {
    return fake.storage().sym_nbytes();
  }
  refuse_sharded(source->real, where);
  if (source->input.kind == GraphInput::Kind::Captured) inputs_.node_of(*source);  // an input, so a guard checks it
  const auto bytes = static_cast<std::int64_t>(source->real.storage().nbytes());
  const bool is_full = bytes_of_elements(spec_of(source->real)) == bytes;
  asked_.push_back({source->real, is_full ? std::nullopt : std::optional(bytes)});
  if (!is_full) return bytes;
  source->fake.sym_sizes();  // marks the sizes as read, because the answer depends on them
  return bytes_of_elements(spec_of(source->fake));
}

using graph::Node;

Recording::Recording(std::shared_ptr<shapes::ShapeEnv> shape_env, std::vector<NamedTensor> of_module)
    : shapes(std::move(shape_env)),
      mode(shapes, nullptr, /*is_traced=*/true),
      symbols([this](const std::string& target,
                     graph::List arguments) -> Node& { return graph.call(target, std::move(arguments)); },
              [this](const std::string& symbol) -> Node& { return node_of_symbol(symbol); }),
      inputs(graph, symbols, families, std::move(of_module)),
      values(graph, inputs, families),
      storages(inputs),
      modes(graph),
      segments(graph, inputs, symbols),
      context_{[this](const at::Tensor& tensor) -> graph::Argument { return node_of(tensor); }, symbols, graph.site()} {
}

at::Tensor Recording::fake_of(const at::Tensor& tensor) {
  if (!tensor.defined() || is_fake(tensor)) return tensor;
  const bool is_new = !inputs.has(tensor);
  if (is_new && !inputs.name_of(tensor) && has_passing_memory(tensor)) {
    throw NotCapturable("a tensor of memory that it does not own (from_blob()) is used in a captured function",
                        "The memory may be gone when the graph runs: use at::tensor(), a static array, or from_blob() "
                        "with a deleter.",
                        graph.site());
  }
  at::Tensor fake = inputs.source_of(mode, tensor).fake;
  const auto is_it = [&](const at::Tensor& made) { return made.is_same(tensor); };
  if (is_new && std::any_of(constants_.begin(), constants_.end(), is_it)) copy_constant(fake);
  return fake;
}

void Recording::copy_constant(const at::Tensor& fake) {
  Inputs::Source* const source = inputs.find(fake_id(fake));
  REHEARSE_CHECK(source != nullptr && !source->input.is_made_inside, source != nullptr);
  source->input.is_made_inside = true;
  Node& copy = graph.call("torch.ops.aten.clone.default", {values.node_of(fake)});
  copy.meta().set_value(meta_of(fake));
  values.add(fake, copy, {});
}

c10::IValue Recording::with_fakes(const c10::IValue& value) {
  if (value.isTensor()) return fake_of(value.toTensor());
  if (!value.isList()) return value;
  bool has_real = false;
  for_each_tensor(value, [&](const at::Tensor& tensor) { has_real = has_real || !is_fake(tensor); });
  if (!has_real) return value;
  const auto list = value.toList();
  c10::impl::GenericList fakes(list.elementType());
  for (const c10::IValue& item : value.toListRef()) fakes.push_back(with_fakes(item));
  return fakes;
}

Node& Recording::node_of(const at::Tensor& tensor) { return values.node_of(fake_of(tensor)); }

void Recording::note_owner(const torch::jit::Stack& arguments) {
  const std::string* name = nullptr;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (name == nullptr && !is_fake(tensor)) name = inputs.name_of(tensor);
    });
  }
  if (name) graph.set_owner(owner_of(*name));
}

void Recording::note_size(const std::string& symbol, Node& node, const std::vector<std::int64_t>& path,
                          std::int64_t dim) {
  if (symbols.knows_symbol(symbol) || sizes_.contains(symbol)) return;
  sizes_.emplace(symbol, SymbolSource{&node, path, dim});
  node.meta().unbacked_bindings.push_back(symbol);
}

void Recording::bind_sizes() {
  for (const auto& [symbol, source] : sizes_) {
    if (!symbols.knows_symbol(symbol)) node_of_symbol(symbol);
  }
}

Node& Recording::node_of_symbol(const std::string& symbol) {
  const auto found = sizes_.find(symbol);
  if (found == sizes_.end()) return inputs.node_of_symbol(symbol);
  Node* value = found->second.node;
  for (const std::int64_t index : found->second.path) value = &graph.item(*value, index);
  Node& size = graph.call("torch.ops.aten.sym_size.int", {*value, found->second.dim});
  symbols.bind_symbol(symbol, size);
  return size;
}

void Recording::add_asserts() {
  REHEARSE_CHECK(asserts_added_ <= shapes->asserts().size(), asserts_added_, shapes->asserts().size());
  // By index, because making nodes may add further asserts.
  for (; asserts_added_ < shapes->asserts().size(); ++asserts_added_) {
    const shapes::Guard fact = shapes->asserts()[asserts_added_];
    const std::vector<std::string> symbols_of_fact = fact.condition.symbols();
    const bool has_values =
        std::all_of(symbols_of_fact.begin(), symbols_of_fact.end(), [this](const std::string& symbol) {
          return !shapes::is_unbacked_name(symbol) || symbols.knows_symbol(symbol) || sizes_.contains(symbol);
        });
    if (!has_values) continue;  // an operator's internal size: no value of the graph has it
    graph.set_origin(fact.where);
    graph.call("torch.ops.aten._assert_scalar.default",
               {symbols.truth_of(fact.condition), "Runtime assertion failed for expression " + fact.condition.text()});
  }
}

void Recording::skip_asserts() { asserts_added_ = shapes->asserts().size(); }

}  // namespace rehearse::capture
