// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/graph/metadata.h>

namespace rehearse::compiler {

// What an entry of the cache takes one tensor to be. Sizes that vary are guarded elsewhere, through their symbols.
// Data is never guarded. The storage offset is guarded after guard_offset(), the storage's size after guard_storage().
class TensorGuard {
 public:
  static constexpr std::int64_t kVaries = -1;

  // Of `tensor` as it is. `varies`: for each dimension, whether its size may be another one; empty: none may.
  TensorGuard(const at::Tensor& tensor, std::string source, const std::vector<bool>& varies = {});

  // Sizes and strides are of no interest, only how many there are.
  void ignore_layout() {
    dimensions_.clear();
    fixed_layout_.clear();
  }
  // The tensor begins where the first one did in its storage.
  void guard_offset() noexcept { guards_offset_ = true; }
  // The storage has as many bytes as the elements take, or the number that is given.
  void guard_storage(std::optional<std::int64_t> bytes) noexcept;
  // What the tensor was when it was captured, which it is no more: code that ran meanwhile gave it a history or other
  // sizes. Sizes that are symbols are left as they are.
  void expect_as(const graph::TensorMeta& captured);

  // Fills `failure`, when it is given, with the first thing that differs.
  bool holds(const at::Tensor& tensor, GuardFailure* failure = nullptr) const;

  // Returns the index of the first guard, from `from` on, that needs holds() to decide; the number of guards if all
  // surely hold. Takes a few instructions for each guard, because a model has hundreds of parameters.
  static std::size_t first_doubtful(const std::vector<TensorGuard>& guards, const std::vector<at::Tensor>& tensors,
                                    std::size_t from) noexcept;

  const std::string& source() const noexcept { return source_; }
  // Of the first use of the tensor; looked up when a failure is told.
  void set_origin(std::shared_ptr<const graph::Origin> origin) { origin_ = std::move(origin); }

 private:
  struct Dimension {
    std::int64_t size;     // kVaries: not guarded here
    std::int64_t stride;   // where follows < 0
    std::int32_t follows;  // the dimension of which this stride is stride times size; -1: none
  };

  // Whether it surely holds: false says nothing.
  bool surely_holds(const c10::TensorImpl& impl) const noexcept;
  // Asks the cache for what surely_holds() reads.
  void prefetch(const c10::TensorImpl& impl) const noexcept;
  void fix_layout();
  bool holds_layout(const c10::TensorImpl& impl, GuardFailure* failure) const;
  bool holds_storage(const at::Tensor& tensor, GuardFailure* failure) const;
  bool fail(GuardFailure* failure, const std::string& field, std::string expected, std::string found) const;

  // What surely_holds() reads comes first: it lies in one line of the cache.
  std::uint64_t key_set_;
  c10::Device device_;
  c10::ScalarType dtype_;
  bool requires_grad_;
  bool is_wrapped_number_;
  bool guards_offset_ = false;
  bool guards_storage_ = false;
  // All sizes, and then all strides, where they are numbers. Empty: they are not.
  std::vector<std::int64_t> fixed_layout_;

  std::int64_t dim_;
  std::int64_t storage_offset_;
  std::optional<std::int64_t> storage_bytes_;
  std::vector<Dimension> dimensions_;  // none where sizes are of no interest
  std::string source_;
  std::shared_ptr<const graph::Origin> origin_;
};

}  // namespace rehearse::compiler
