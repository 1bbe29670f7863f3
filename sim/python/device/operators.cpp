// SPDX-License-Identifier: BSD-3-Clause
// Operators on "cuda": those of the CPU on its memory, and the few that make or change a tensor's memory.
#include <optional>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "python/device/cuda.h"
#include "python/device/loan.h"

namespace rehearse::python {
namespace {

using torch::CppFunction;

// Lets the CPU's kernels draw what the GPU's generator gives next.
class Draw {
 public:
  explicit Draw(CudaGenerator& generator)
      : of_cpu_(at::get_generator_or_default<at::CPUGeneratorImpl>({}, at::detail::getDefaultCPUGenerator())),
        engine_(of_cpu_->engine()),
        next_float_(of_cpu_->next_float_normal_sample()),
        next_double_(of_cpu_->next_double_normal_sample()) {
    set(at::mt19937(generator.next_seed()), {}, {});
  }
  Draw(const Draw&) = delete;
  Draw& operator=(const Draw&) = delete;
  ~Draw() { set(engine_, next_float_, next_double_); }

 private:
  void set(const at::mt19937& engine, std::optional<float> next_float, std::optional<double> next_double) {
    of_cpu_->set_engine(engine);
    of_cpu_->set_next_float_normal_sample(next_float);
    of_cpu_->set_next_double_normal_sample(next_double);
  }

  at::CPUGeneratorImpl* const of_cpu_;
  const at::mt19937 engine_;
  const std::optional<float> next_float_;
  const std::optional<double> next_double_;
};

// The generator that the caller names, or the rank's; none of the CPU is left among the arguments.
CudaGenerator& generator_of(c10::ArrayRef<c10::IValue> arguments, const c10::OperatorHandle& op) {
  for (const auto& value : arguments) {
    if (!value.isGenerator()) continue;
    const auto& generator = value.toGenerator();
    TORCH_CHECK(generator.device().type() == kCuda, "Expected a 'cuda' device type for generator but found '",
                generator.device().type(), "' (", op.operator_name(), ")");
    return *static_cast<CudaGenerator*>(generator.unsafeGetGeneratorImpl());
  }
  return *static_cast<CudaGenerator*>(cuda_generator().unsafeGetGeneratorImpl());
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device, std::optional<bool> /*pin*/,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard on(c10::device_or_default(device));
  return at::detail::empty_generic(size, &cuda_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                         std::optional<bool> /*pin*/) {
  const c10::DeviceGuard on(c10::device_or_default(device));
  return at::detail::empty_strided_generic(size, strides, &cuda_allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(type));
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool /*non_blocking*/) {
  if (source._is_zerotensor()) {  // it has no memory
    target.zero_();
    return target;
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  const auto on_cpu = [](const at::Tensor& tensor) { return tensor.is_cpu() ? tensor : labelled(tensor, c10::kCPU); };
  on_cpu(target).copy_(on_cpu(source));
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

at::Tensor& set_storage(at::Tensor& result, c10::Storage source, std::int64_t offset, c10::IntArrayRef size,
                        c10::IntArrayRef strides) {
  auto* const impl = result.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (strides.empty()) {
    impl->set_sizes_contiguous(size);
  } else {
    impl->set_sizes_and_strides(size, strides);
  }
  return result;
}

at::Tensor& set_whole_storage(at::Tensor& result, c10::Storage source) {
  const auto elements = static_cast<std::int64_t>(source.nbytes() / result.dtype().itemsize());
  return set_storage(result, std::move(source), 0, {elements}, {});
}

const at::Tensor& resize(const at::Tensor& tensor, c10::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  return at::native::resize_(tensor, size, format);
}

// `parameter.data = tensor` may take one of another device, as between a CPU and a GPU: otherwise Module.to() would
// make new parameters, and an optimizer would keep the old ones.
bool takes_any(const at::Tensor& /*self*/, const at::Tensor& /*from*/) { return true; }

}  // namespace

void call_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto& arguments = schema.arguments();
  const auto values = torch::jit::last(*stack, arguments.size());
  std::optional<Draw> draw;
  if (op.hasTag(at::Tag::nondeterministic_seeded)) draw.emplace(generator_of(values, op));
  Loan loan(op);
  const auto first = stack->size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& value = (*stack)[first + i];
    if (value.isGenerator()) value = c10::IValue();
    loan.lend(value, arguments[i]);
  }
  try {
    const at::AutoDispatchBelowADInplaceOrView guard;
    op.callBoxed(stack);
  } catch (const c10::NotImplementedError&) {
    TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
                                "rehearse --cuda=device: ", op.operator_name(),
                                " has no kernel of the CPU, in which operators on \"cuda\" run");
    throw;
  }
  loan.give_back();
  for (auto i = stack->size() - schema.returns().size(); i < stack->size(); ++i) loan.take((*stack)[i]);
}

void register_kernels(torch::Library& aten) {
  aten.impl("empty.memory_format", empty);
  aten.impl("empty_strided", empty_strided);
  aten.impl("as_strided", at::native::as_strided_tensorimpl);
  aten.impl("view", at::native::view);
  aten.impl("_reshape_alias", at::native::_reshape_alias);
  aten.impl("_copy_from", copy_from);
  aten.impl("_copy_from_and_resize", copy_from_and_resize);
  aten.impl("set_.source_Storage_storage_offset", set_storage);
  aten.impl("set_.source_Storage", set_whole_storage);
  aten.impl("resize_", resize);
  aten.impl("_has_compatible_shallow_copy_type", takes_any);
  // LibTorch would choose kernels by the type of the device.
  aten.impl("convolution", CppFunction::makeFromBoxedFunction<&call_on_cpu>());
  aten.impl("convolution_backward", CppFunction::makeFromBoxedFunction<&call_on_cpu>());
}

}  // namespace rehearse::python
