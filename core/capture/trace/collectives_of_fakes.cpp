// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/collectives_of_fakes.h"

#include <memory>
#include <string>
#include <string_view>

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <rehearse/capture/fake_errors.h>
#include <rehearse/capture/fake_mode.h>
#include <rehearse/capture/fake_tensor.h>

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

// By the schemas: (input, group_size, group), (input, reduce_op, group_size, group), (input, output_splits, ...).
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
  const bool is_argument = name == "wait_tensor" || name.ends_with('_');
  if (is_argument) return arguments[0];
  if (arguments[0].isTensor()) return result_of_one(name, arguments[0].toTensor(), arguments);
  c10::List<at::Tensor> results;
  for (const at::Tensor& input : arguments[0].toTensorVector())
    results.push_back(result_of_one(name, input, arguments));
  return results;
}

void collective_of_fakes(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  FakeMode* const mode = FakeMode::current();
  if (mode == nullptr) throw FakeOutsideMode(op.schema().name(), exec::CallSite::capture());
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  if (arguments[0].isTensor()) {
    arguments[0] = mode->fake_of(arguments[0].toTensor());
  } else {
    c10::List<at::Tensor> fakes;
    for (const at::Tensor& input : arguments[0].toTensorVector()) fakes.push_back(mode->fake_of(input));
    arguments[0] = fakes;
  }
  const std::string& qualified = op.schema().name();
  const Stack results = {result_of_call(std::string_view(qualified).substr(qualified.rfind(':') + 1), arguments)};
  if (mode->listener() != nullptr) mode->listener()->on_operator(op, arguments, results);
  torch::jit::push(*stack, results.front());
}

torch::Library* library_of(const char* name, std::initializer_list<const char*> operators) {
  auto made = std::make_unique<torch::Library>(torch::Library::IMPL, name, c10::DispatchKey::Fake, __FILE__, __LINE__);
  for (const char* op : operators) made->impl(op, torch::CppFunction::makeFromBoxedFunction<&collective_of_fakes>());
  return made.release();
}

}  // namespace

void register_collectives_of_fakes() {
  // Left in place at exit: LibTorch's dispatcher may be gone before them.
  static const auto* const plain =
      library_of("_c10d_functional",
                 {"all_reduce", "all_reduce_", "all_reduce_coalesced", "all_reduce_coalesced_",
                  "all_gather_into_tensor", "all_gather_into_tensor_coalesced", "reduce_scatter_tensor",
                  "reduce_scatter_tensor_coalesced", "all_to_all_single", "broadcast", "broadcast_", "wait_tensor"});
  static const auto* const with_gradients =
      library_of("_c10d_functional_autograd", {"all_to_all_single", "reduce_scatter_tensor", "all_gather_into_tensor"});
  static_cast<void>(plain);
  static_cast<void>(with_gradients);
}

}  // namespace rehearse::capture
