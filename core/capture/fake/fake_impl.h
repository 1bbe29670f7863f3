// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <rehearse_internal/capture/fake_tensor.h>

#include "capture/fake/capture_thread.h"

namespace rehearse::capture {

// A fake tensor. Reading a symbolic size as an int adds a guard on its symbols. If the size depends on an unbacked
// symbol whose value is not known, the read throws shapes::DataDependentError.
class FakeImpl final : public c10::TensorImpl {
 public:
  FakeImpl(c10::Storage storage, const TensorSpec& spec, std::uint64_t id);

  std::uint64_t id() const noexcept { return id_; }
  // Null if no capture is known.
  const std::shared_ptr<CaptureThread>& capture_thread() const noexcept { return capture_thread_; }
  // In a traced capture, also adds the dispatch key DeferredInit, which comes before autograd. Otherwise autograd would
  // refuse some operators that other threads call on the fake.
  void set_capture_thread(std::shared_ptr<CaptureThread> thread);
  // Call it when an operator has changed the tensor's geometry in place, as t_() does.
  void set_geometry(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const c10::SymInt& storage_offset);
  // Turns the fake into a real tensor that shares the memory of `real`. Does not copy the autograd metadata of `real`.
  void become(const c10::TensorImpl& real);

  // True if anyone has read sizes, strides, offset or a value derived from them while no UntrackedRead lived.
  bool layout_was_read() const noexcept { return layout_was_read_; }
  // From now on, the fake shares the storage of `real` and has its sizes, without symbols. The fake stays a fake. Does
  // nothing if `real` has no storage.
  void take_memory(const at::Tensor& real);
  // The tensor that take_memory() got. Undefined if it was not called.
  const at::Tensor& real() const noexcept { return real_; }
  void set_layout_was_read(bool was_read) const noexcept { layout_was_read_ = was_read; }
  // False while an UntrackedRead lives. Then reads of the offset are not noted. The destructor of the UntrackedRead
  // restores layout_was_read().
  bool tracks_reads() const noexcept { return tracks_reads_; }
  void set_tracks_reads(bool tracks) const noexcept { tracks_reads_ = tracks; }

  std::int64_t size_custom(std::int64_t dim) const override;
  c10::IntArrayRef sizes_custom() const override;
  c10::IntArrayRef strides_custom() const override;
  std::int64_t numel_custom() const override;
  std::int64_t storage_offset_custom() const override;
  c10::SymIntArrayRef sym_sizes_custom() const override;
  c10::SymIntArrayRef sym_strides_custom() const override;
  c10::SymInt sym_size_custom(std::int64_t dim) const override;
  c10::SymInt sym_numel_custom() const override;
  c10::SymInt sym_storage_offset_custom() const override;
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override;
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override;
  bool is_strides_like_custom(at::MemoryFormat format) const override;

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool allow_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool allow_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) override;
  const char* tensorimpl_type_name() const override { return is_real_ ? "TensorImpl" : "FakeImpl"; }

 private:
  c10::intrusive_ptr<FakeImpl> copy() const;
  void take_metadata(const c10::TensorImpl& real);

  std::uint64_t id_;
  std::shared_ptr<CaptureThread> capture_thread_;
  at::Tensor real_;
  bool is_real_ = false;                           // become() was called
  std::unique_ptr<c10::ExtraMeta> former_layout_;  // symbolic sizes and strides from before take_metadata()
  mutable bool layout_was_read_ = false;
  mutable bool tracks_reads_ = true;
  mutable std::vector<std::int64_t> sizes_as_numbers_, strides_as_numbers_;
};

// Null if the tensor is not fake.
FakeImpl* fake_impl(const at::Tensor& tensor);

// While it lives, the fake does not track reads of its layout. Does nothing for a real tensor.
class UntrackedRead {
 public:
  explicit UntrackedRead(const at::Tensor& tensor) : impl_(fake_impl(tensor)) {
    if (!impl_) return;
    was_read_ = impl_->layout_was_read();
    tracked_reads_ = impl_->tracks_reads();
    impl_->set_tracks_reads(false);
  }
  UntrackedRead(const UntrackedRead&) = delete;
  UntrackedRead& operator=(const UntrackedRead&) = delete;
  ~UntrackedRead() {
    if (!impl_) return;
    impl_->set_layout_was_read(was_read_);
    impl_->set_tracks_reads(tracked_reads_);
  }

 private:
  const FakeImpl* impl_;
  bool was_read_ = false;
  bool tracked_reads_ = true;
};

// LibTorch's error about a fake's memory contains these words. with_typed_errors() recognises the error by them.
inline constexpr const char* kDataAccessMessage = "A fake tensor has no data (it is being captured).";

}  // namespace rehearse::capture
