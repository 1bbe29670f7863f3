// SPDX-License-Identifier: BSD-3-Clause
#include "compile/cache/cache_key.h"

#include <cstddef>
#include <map>
#include <stdexcept>

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <fmt/format.h>

#include <rehearse/graph/text.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/build_id.h>
#include <rehearse_internal/hash/fnv1a.h>
#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/operators/storage_of.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "compile/guards/global_state.h"

namespace rehearse::compiler {
namespace {

using graph::Argument;
using graph::List;
using graph::Node;

// LibTorch turns numbers into tensors. A back end that records a backward reads the values of these tensors, and of no
// others. The key has the values of all contiguous attributes with at most this many elements.
constexpr std::int64_t kElementsRead = 16;

List flags(const auto& values) {
  List list;
  for (const auto& value : values) list.emplace_back(value);
  return list;
}

// Names every field of GlobalState, so that a new field does not compile here until it is part of the key.
List modes() {
  const auto [types, grad_mode, inference_mode, autocast, autocast_dtype, autocast_cache, deterministic, warns_only,
              default_dtype, attention, module_modes, function] = GlobalState::current();
  static_cast<void>(types);  // current() fills none of these three
  static_cast<void>(module_modes);
  static_cast<void>(function);
  return {
      grad_mode,     inference_mode, flags(autocast), flags(autocast_dtype), autocast_cache,
      deterministic, warns_only,     default_dtype,   flags(attention),      at::globalContext().userEnabledMkldnn()};
}

List layouts(const std::vector<bool>& fixed) {
  List list;
  for (const bool each : fixed) list.emplace_back(each);
  return list;
}

std::string examples(const std::vector<c10::IValue>& values) {
  graph::GraphModule module("examples");
  for (const c10::IValue& value : values) {
    Node& node = module.graph().placeholder("example");
    if (value.isTensor() && value.toTensor().defined()) {
      node.meta().set_value(capture::meta_of(value.toTensor()));
    } else if (value.isSymInt() || value.isInt()) {
      node.meta().set_value(graph::SymScalarMeta{.expression = shapes::expr_of(value.toSymInt())});
    }
  }
  return to_text(module);
}

// For each example, the index of the first example with the same memory.
List memory(const std::vector<c10::IValue>& values) {
  List list;
  std::map<const void*, std::size_t> first;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* const storage = values[i].isTensor() ? operators::storage_of(values[i].toTensor()) : nullptr;
    list.emplace_back(storage != nullptr ? first.emplace(storage, i).first->second : i);
  }
  return list;
}

std::string contents(const at::Tensor& tensor) {
  const bool is_read = tensor.defined() && tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
                       tensor.numel() <= kElementsRead && tensor.is_contiguous();
  if (!is_read) return "not read";
  std::string text = tensor.unsafeGetTensorImpl()->is_wrapped_number() ? "number " : "";
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// Throws if the tensor is not on the CPU, because kernels and the layouts of their results depend on the device.
void require_cpu(const graph::TensorMeta* tensor) {
  if (tensor == nullptr || tensor->device.is_cpu()) return;
  throw std::runtime_error("it has a tensor on " + tensor->device.str() + ", and only graphs of CPUs are stored");
}

void add_unprinted(const graph::GraphModule& module, List& list) {
  for (const auto& [name, attribute] : module.attributes()) {
    require_cpu(&attribute.meta);
    list.emplace_back(contents(attribute.tensor));
  }
  for (const Node& node : module.graph()) {
    const graph::Metadata& meta = node.meta();
    require_cpu(meta.tensor());
    if (meta.brings_history == 0 && meta.history_from == 0) continue;
    list.push_back(List{node.name(), meta.brings_history, meta.history_from});
  }
  for (const auto& [name, submodule] : module.submodules()) add_unprinted(*submodule, list);
}

List symbols(const shapes::ShapeEnv& shapes) {
  if (!shapes.unbacked().empty() || !shapes.asserts().empty()) {
    throw std::runtime_error("it has sizes that are known only at run time");
  }
  List list;
  for (const shapes::BackedSymbol& symbol : shapes.backed()) {
    const shapes::Range range = shapes.range(shapes::Expr::symbol(symbol.name));
    list.push_back(List{symbol.name, symbol.hint, symbol.number, range.lower, range.upper});
  }
  for (const shapes::Guard& guard : shapes.guards()) {
    list.push_back(List{guard.condition.text(), guard.specialises});
  }
  return list;
}

}  // namespace

std::string cache_key(const BackendInput& input, const std::string& backend, const std::string& of_backend) {
  std::string key;
  const auto add = [&key](const char* what, const Argument& value) {
    key += fmt::format("{}: {}\n", what, graph::to_text(value));
  };
  add("back end", List{backend, of_backend});
  add("modes", modes());
  add("fixed layouts", layouts(input.fixed_layouts));
  add("memory", memory(input.example_inputs));
  if (input.shapes != nullptr) add("symbols", symbols(*input.shapes));
  List unprinted;
  add_unprinted(*input.module, unprinted);
  add("beside the text", unprinted);
  key += examples(input.example_inputs);
  return key + graph::to_text(*input.module, graph::Origins::Without);
}

std::string program_id() {
  const std::string ours = exec::build_id_at(reinterpret_cast<const void*>(&program_id));
  const std::string id_of_libtorch = exec::build_id_at(&at::globalContext());
  if (ours.empty() || id_of_libtorch.empty()) return "";
  Fnv1a loaded;
  for (const std::string& each : exec::loaded_code()) loaded.add(each + "\n");
  return fmt::format("Rehearse {}, LibTorch {} {}, {}, and libraries {:016x}", ours, libtorch::kVersion, id_of_libtorch,
                     at::get_cpu_capability(), loaded.value());
}

}  // namespace rehearse::compiler
