// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/collectives_of_fakes.h"

#include <string>
#include <string_view>

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>

#include "capture/fake/never_destroyed.h"

namespace rehearse::capture {
namespace {

using torch::jit::Stack;

at::Tensor with_rows(const at::Tensor& like, c10::SymInt rows) {
  TensorSpec spec;
  const auto sizes = like.sym_sizes();
  spec.sizes.assign(sizes.begin(), sizes.end());
  if (!spec.sizes.empty()) spec.sizes.front() = std::move(rows);
  spec.strides = contiguous_strides(spec.sizes);
  spec.dtype = like.scalar_type();
  spec.device = like.device();
  return make_fake(spec);
}

c10::SymInt rows_of(const at::Tensor& tensor) { return tensor.dim() == 0 ? c10::SymInt(1) : tensor.sym_size(0); }

// Arguments by schema: (input, group_size, group), (input, reduce_op, group_size, group), (input, output_splits, ...).
at::Tensor result_of_one(std::string_view name, const at::Tensor& input, const Stack& arguments) {
  if (name.starts_with("all_gather")) return with_rows(input, rows_of(input) * arguments[1].toInt());
  if (name.starts_with("reduce_scatter")) return with_rows(input, rows_of(input) / arguments[2].toInt());
  if (name != "all_to_all_single") return with_rows(input, rows_of(input));
  const auto splits = arguments[1].toSymIntVector();
  c10::SymInt rows = splits.empty() ? rows_of(input) : c10::SymInt(0);
  for (const c10::SymInt& split : splits) rows = rows + split;
  return with_rows(input, rows);
}

c10::IValue result_of_call(std::string_view name, const Stack& arguments) {
  const bool is_argument = name.starts_with("wait_tensor") || name.ends_with('_');
  if (is_argument) return arguments[0];
  if (arguments[0].isTensor()) return result_of_one(name, arguments[0].toTensor(), arguments);
  c10::List<at::Tensor> results;
  for (const at::Tensor& input : arguments[0].toTensorVector())
    results.push_back(result_of_one(name, input, arguments));
  return results;
}

template <class Map>
c10::IValue each_tensor(const c10::IValue& value, Map&& map) {
  if (value.isTensor()) return map(value.toTensor());
  c10::List<at::Tensor> mapped;
  for (const at::Tensor& tensor : value.toTensorVector()) mapped.push_back(map(tensor));
  return mapped;
}

bool is_differentiated(const c10::IValue& inputs) {
  bool any = false;
  each_tensor(inputs, [&](const at::Tensor& input) {
    any = any || input.requires_grad();
    return input;
  });
  return any && at::GradMode::is_enabled() && !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradCPU);
}

// LibTorch's kernels of these collectives copy their inputs and run the collective in place on the copies. The
// collective has no gradient formula but the copy has one, so the result has the gradient of the copy.
bool copies_inputs(std::string_view name) {
  return name == "all_reduce" || name == "broadcast" || name == "all_reduce_coalesced";
}

c10::OperatorHandle in_place_form(const c10::OperatorHandle& op) {
  return c10::Dispatcher::singleton().findSchemaOrThrow((op.schema().name() + '_').c_str(), "");
}

void collective_of_fakes(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  FakeMode* const mode = FakeMode::current();
  if (mode == nullptr) return call_without_mode(op, keys, *stack);
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  const std::string& qualified = op.schema().name();
  const std::string_view name = std::string_view(qualified).substr(qualified.rfind(':') + 1);
  const bool as_copies = copies_inputs(name) && is_differentiated(arguments[0]);
  // In eager mode, all results then have a history, also those of tensors that require no gradient.
  if (name == "wait_tensors" && is_differentiated(arguments[0]))
    mode->refuse("a wait for several tensors, of which one requires a gradient,", "Wait for each with wait_tensor().");
  arguments[0] = each_tensor(arguments[0], [&](const at::Tensor& input) {
    const at::Tensor fake = mode->fake_of(input);
    return as_copies ? fake.clone(at::MemoryFormat::Contiguous) : fake;
  });
  Stack results;
  if (!op.schema().returns().empty()) results.push_back(as_copies ? arguments[0] : result_of_call(name, arguments));
  if (mode->listener() != nullptr) {
    mode->listener()->on_operator(as_copies ? in_place_form(op) : op, arguments, results);
  }
  stack->insert(stack->end(), results.begin(), results.end());
}

torch::Library library_of(const char* name, std::initializer_list<const char*> operators) {
  torch::Library made(torch::Library::IMPL, name, c10::DispatchKey::Fake, __FILE__, __LINE__);
  for (const char* op : operators) {  // wait_tensors exists since LibTorch 2.15
    if (!c10::Dispatcher::singleton().findSchema({std::string(name) + "::" + op, ""})) continue;
    made.impl(op, torch::CppFunction::makeFromBoxedFunction<&collective_of_fakes>());
  }
  return made;
}

}  // namespace

void register_collectives_of_fakes() {
  static const NeverDestroyed<torch::Library> plain([] {
    return library_of(
        "_c10d_functional",
        {"all_reduce", "all_reduce_", "all_reduce_coalesced", "all_reduce_coalesced_", "all_gather_into_tensor",
         "all_gather_into_tensor_coalesced", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced",
         "all_to_all_single", "broadcast", "broadcast_", "wait_tensor", "wait_tensors"});
  });
  static const NeverDestroyed<torch::Library> with_gradients([] {
    return library_of("_c10d_functional_autograd",
                      {"all_to_all_single", "reduce_scatter_tensor", "all_gather_into_tensor"});
  });
}

}  // namespace rehearse::capture
