// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/fake_tensor.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <c10/core/StorageImpl.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/exec/fiber_local.h>
#include "capture/fake/fake_impl.h"

namespace rehearse::capture {
namespace {

// Each fiber and thread counts in its own range: a thread may pass its fakes to a capture elsewhere, and identities
// must not collide.
struct Identities {
  std::uint64_t last = next_place.fetch_add(1) << 40;
  static inline std::atomic<std::uint64_t> next_place = 0;
};
const exec::FiberLocal<Identities> identities;

c10::Storage new_storage(const TensorSpec& spec) {
  auto impl = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes_of_elements(spec),
                                                    c10::DataPtr(nullptr, spec.device), nullptr, false);
  impl->release_data_and_set_meta_custom_data_ptr_error_msg_(kDataAccessMessage);
  return c10::Storage(std::move(impl));
}

std::shared_ptr<CaptureThread> thread_of(const at::Tensor& alias_of) {
  if (const FakeImpl* const fake = fake_impl(alias_of)) return fake->capture_thread();
  const FakeMode* const mode = FakeMode::current();
  return mode ? mode->thread() : nullptr;
}

}  // namespace

std::vector<std::int64_t> outermost_first(at::IntArrayRef strides) {
  std::vector<std::int64_t> dimensions(strides.size());
  std::iota(dimensions.begin(), dimensions.end(), 0);
  const auto stride = [&](std::int64_t dimension) { return strides[static_cast<std::size_t>(dimension)]; };
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [&](std::int64_t one, std::int64_t other) { return stride(one) > stride(other); });
  return dimensions;
}

std::vector<c10::SymInt> contiguous_strides(c10::ArrayRef<c10::SymInt> sizes) {
  std::vector<c10::SymInt> strides(sizes.size(), c10::SymInt(1));
  c10::SymInt step = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    const auto plain = sizes[d].maybe_as_int();
    if (!plain || *plain > 1) step = step * sizes[d];
  }
  return strides;
}

c10::SymInt bytes_of_elements(const TensorSpec& spec) {
  const std::int64_t item = static_cast<std::int64_t>(c10::elementSize(spec.dtype));
  c10::SymInt last = spec.storage_offset;
  for (std::size_t d = 0; d < spec.sizes.size(); ++d) {
    const auto size = spec.sizes[d].maybe_as_int();
    if (size == 0) return 0;
    if (size != 1) last += (spec.sizes[d] - 1) * spec.strides[d];
  }
  return (last + 1) * item;
}

TensorSpec spec_of(const at::Tensor& tensor) {
  const UntrackedRead untracked(tensor);
  return TensorSpec{.sizes = tensor.sym_sizes().vec(),
                    .strides = tensor.sym_strides().vec(),
                    .storage_offset = tensor.sym_storage_offset(),
                    .dtype = tensor.scalar_type(),
                    .device = tensor.device(),
                    .requires_grad = tensor.requires_grad(),
                    .is_wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number(),
                    .is_conj = tensor.is_conj(),
                    .is_neg = tensor.is_neg()};
}

at::Tensor make_fake(const TensorSpec& spec, const at::Tensor& alias_of) {
  c10::Storage storage = alias_of.defined() ? alias_of.storage() : new_storage(spec);
  auto impl = c10::make_intrusive<FakeImpl>(std::move(storage), spec, ++identities->last);
  impl->set_capture_thread(thread_of(alias_of));
  at::Tensor made(std::move(impl));
  if (spec.requires_grad) made.set_requires_grad(true);
  return made;
}

// LibTorch has named tensors until 2.12.
template <class Tensor>
bool has_names(const Tensor& tensor) {
  if constexpr (requires { tensor.has_names(); }) {
    return tensor.has_names();
  } else {
    return false;
  }
}

bool has_tangent(const at::Tensor& tensor) {
  const auto* const meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta != nullptr && meta->fw_grad_ != nullptr && !meta->fw_grad_->empty();
}

std::string kind_without_fakes(const at::Tensor& tensor) {
  if (!tensor.defined()) return "";
  if (tensor.is_nested()) return "nested";
  if (tensor.is_quantized()) return "quantized";
  if (tensor.is_mkldnn()) return "mkldnn";
  if (has_tangent(tensor)) return "dual";
  if (has_names(tensor)) return "named";
  return tensor.layout() == at::kStrided ? "" : "sparse";
}

bool is_fake(const at::Tensor& tensor) { return fake_impl(tensor) != nullptr; }

std::uint64_t fake_id(const at::Tensor& fake) {
  const FakeImpl* const impl = fake_impl(fake);
  if (!impl) throw std::invalid_argument("fake_id: the tensor is a real one; ask is_fake() first");
  return impl->id();
}

bool layout_was_read(const at::Tensor& fake) {
  const FakeImpl* const impl = fake_impl(fake);
  return impl && impl->layout_was_read();
}

bool offset_was_read(const at::Tensor& fake) {
  const FakeImpl* const impl = fake_impl(fake);
  return impl && impl->capture_thread() && fake.has_storage() &&
         impl->capture_thread()->knows_offset(fake.storage().unsafeGetStorageImpl());
}

bool share_storage(const at::Tensor& left, const at::Tensor& right) {
  return left.has_storage() && right.has_storage() &&
         left.storage().unsafeGetStorageImpl() == right.storage().unsafeGetStorageImpl();
}

}  // namespace rehearse::capture
