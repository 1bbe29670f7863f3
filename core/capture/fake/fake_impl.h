// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <rehearse/capture/fake_tensor.h>

namespace rehearse::capture {

// The tensor itself. int-valued questions about symbolic sizes are guards of the symbols.
class FakeImpl final : public c10::TensorImpl {
 public:
  FakeImpl(c10::Storage storage, const TensorSpec& spec, std::uint64_t id);

  std::uint64_t id() const noexcept { return id_; }
  // What an operator such as t_() does to its argument.
  void set_geometry(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const c10::SymInt& storage_offset);

  std::int64_t size_custom(std::int64_t dim) const override;
  c10::IntArrayRef sizes_custom() const override;
  c10::IntArrayRef strides_custom() const override;
  std::int64_t numel_custom() const override;
  std::int64_t storage_offset_custom() const override;

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool allow_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool allow_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) override;
  const char* tensorimpl_type_name() const override { return "FakeImpl"; }

 private:
  c10::intrusive_ptr<FakeImpl> copy() const;

  std::uint64_t id_;
  mutable std::vector<std::int64_t> sizes_as_numbers_, strides_as_numbers_;
};

// Null when it is not fake.
FakeImpl* fake_impl(const at::Tensor& tensor);

// The words of LibTorch's error about a fake's memory: how that error is known again.
inline constexpr const char* kDataAccessMessage = "A fake tensor has no data (it is being captured).";

}  // namespace rehearse::capture
