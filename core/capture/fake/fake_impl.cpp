// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/fake_impl.h"

#include <utility>

#include <c10/core/WrapDimMinimal.h>

namespace rehearse::capture {
namespace {

c10::DispatchKeySet keys_of(const TensorSpec& spec) {
  const c10::DispatchKey backend = c10::computeDispatchKey(spec.dtype, c10::kStrided, spec.device);
  c10::DispatchKeySet keys{backend, c10::DispatchKey::Fake};
  if (spec.is_conj) keys = keys.add(c10::DispatchKey::Conjugate);
  if (spec.is_neg) keys = keys.add(c10::DispatchKey::Negative);
  return keys;
}

// Returns a reference to `numbers`, a member of the fake, so callers of sizes() may hold the reference for as long as
// the fake lives.
c10::IntArrayRef as_numbers(c10::SymIntArrayRef values, const char* what, std::vector<std::int64_t>& numbers) {
  numbers.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) numbers[i] = values[i].guard_int(what, 0);
  return numbers;
}

}  // namespace

FakeImpl::FakeImpl(c10::Storage storage, const TensorSpec& spec, std::uint64_t id)
    : TensorImpl(std::move(storage), keys_of(spec), c10::scalarTypeToTypeMeta(spec.dtype)), id_(id) {
  device_opt_ = spec.device;
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);  // sends size and stride queries to the functions below
  set_geometry(spec.sizes, spec.strides, spec.storage_offset);
  if (spec.is_wrapped_number) set_wrapped_number(true);
}

void FakeImpl::set_geometry(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const c10::SymInt& storage_offset) {
  const auto plain_sizes = c10::asIntArrayRefSlowOpt(sizes);
  const auto plain_strides = c10::asIntArrayRefSlowOpt(strides);
  if (has_symbolic_sizes_strides_ || !plain_sizes || !plain_strides || storage_offset.is_heap_allocated()) {
    // A tensor that was symbolic before must stay symbolic, even with plain numbers: TensorImpl has no way back.
    set_sizes_and_strides(sizes, strides, storage_offset);
    return;
  }
  set_sizes_and_strides(*plain_sizes, *plain_strides, storage_offset.as_int_unchecked());
}

std::int64_t FakeImpl::size_custom(std::int64_t dim) const { return sym_size_custom(dim).guard_int("Tensor::size", 0); }

c10::IntArrayRef FakeImpl::sizes_custom() const {
  layout_was_read_ = true;
  if (!has_symbolic_sizes_strides_) return sizes_default();
  return as_numbers(sym_sizes_default(), "Tensor::sizes", sizes_as_numbers_);
}

c10::IntArrayRef FakeImpl::strides_custom() const {
  layout_was_read_ = true;
  if (!has_symbolic_sizes_strides_) return strides_default();
  return as_numbers(sym_strides_default(), "Tensor::strides", strides_as_numbers_);
}

std::int64_t FakeImpl::numel_custom() const { return sym_numel_custom().guard_int("Tensor::numel", 0); }

std::int64_t FakeImpl::storage_offset_custom() const {
  return sym_storage_offset_custom().guard_int("Tensor::storage_offset", 0);
}

c10::SymIntArrayRef FakeImpl::sym_sizes_custom() const {
  layout_was_read_ = true;
  return sym_sizes_default();
}

c10::SymIntArrayRef FakeImpl::sym_strides_custom() const {
  layout_was_read_ = true;
  return sym_strides_default();
}

c10::SymInt FakeImpl::sym_size_custom(std::int64_t dim) const {
  return sym_sizes_custom()[static_cast<std::size_t>(c10::maybe_wrap_dim(dim, this->dim(), false))];
}

c10::SymInt FakeImpl::sym_numel_custom() const {
  layout_was_read_ = true;
  return sym_numel_default();
}

c10::SymInt FakeImpl::sym_storage_offset_custom() const {
  layout_was_read_ = true;
  if (tracks_reads_ && capture_thread_ && capture_thread_->is_traced()) {
    capture_thread_->note_offset(storage_);
  }
  return sym_storage_offset_default();
}

c10::SymBool FakeImpl::sym_is_contiguous_custom(at::MemoryFormat format) const {
  layout_was_read_ = true;
  return sym_is_contiguous_default(format);
}

c10::SymBool FakeImpl::sym_is_non_overlapping_and_dense_custom() const {
  layout_was_read_ = true;
  return sym_is_non_overlapping_and_dense_default();
}

bool FakeImpl::is_strides_like_custom(at::MemoryFormat format) const {
  layout_was_read_ = true;
  return is_strides_like_default(format);
}

void FakeImpl::set_capture_thread(std::shared_ptr<CaptureThread> thread) {
  capture_thread_ = std::move(thread);
  if (capture_thread_ && capture_thread_->is_traced()) key_set_ = key_set_.add(c10::DispatchKey::DeferredInit);
}

void FakeImpl::take_memory(const at::Tensor& real) {
  if (!real.has_storage()) return;
  const c10::DispatchKeySet keys = key_set_;
  take_metadata(*real.unsafeGetTensorImpl());
  key_set_ = keys;
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
  real_ = real;
}

// Keeps the old sizes alive: if reading an index ends the capture, LibTorch's indexing still holds a reference to them.
void FakeImpl::take_metadata(const c10::TensorImpl& real) {
  former_layout_ = std::move(extra_meta_);
  copy_tensor_metadata(&real, this, real.version_counter(), real.allow_tensor_metadata_change());
}

void FakeImpl::become(const c10::TensorImpl& real) {
  take_metadata(real);
  set_custom_sizes_strides(SizesStridesPolicy::Default);
  capture_thread_.reset();
  real_.reset();
  is_real_ = true;
}

c10::intrusive_ptr<FakeImpl> FakeImpl::copy() const {
  TensorSpec spec{.sizes = sym_sizes_default().vec(),
                  .strides = sym_strides_default().vec(),
                  .storage_offset = sym_storage_offset_default(),
                  .dtype = c10::typeMetaToScalarType(dtype()),
                  .device = device()};
  auto made = c10::make_intrusive<FakeImpl>(storage_, spec, id_);
  made->key_set_ = key_set_;
  made->is_wrapped_number_ = is_wrapped_number_;
  made->capture_thread_ = capture_thread_;
  return made;
}

c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(const c10::VariableVersion& version,
                                                                      bool allow_change) const {
  if (is_real_) return TensorImpl::shallow_copy_and_detach(version, allow_change);
  auto made = copy();
  made->set_version_counter(version);
  made->set_allow_tensor_metadata_change(allow_change);
  return made;
}

c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(c10::VariableVersion&& version,
                                                                      bool allow_change) const {
  if (is_real_) return TensorImpl::shallow_copy_and_detach(std::move(version), allow_change);
  auto made = copy();
  made->set_version_counter(std::move(version));
  made->set_allow_tensor_metadata_change(allow_change);
  return made;
}

void FakeImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) {
  if (is_real_) return TensorImpl::shallow_copy_from(impl);
  const auto* const source = dynamic_cast<const FakeImpl*>(impl.get());
  TORCH_CHECK(source, "set_data: a fake tensor takes the data of another fake tensor, not of a real one");
  copy_tensor_metadata(source, this, version_counter(), allow_tensor_metadata_change());
  id_ = source->id_;
}

FakeImpl* fake_impl(const at::Tensor& tensor) {
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  if (!tensor.defined() || !impl->key_set().has(c10::DispatchKey::Fake)) return nullptr;
  return dynamic_cast<FakeImpl*>(impl);
}

}  // namespace rehearse::capture
