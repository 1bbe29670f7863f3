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

// Guards the properties of one tensor. Sizes that vary are guarded through their symbols instead. Data is never
// guarded. The storage offset is guarded after guard_offset(), the storage's size after guard_storage().
class TensorGuard {
 public:
  static constexpr std::int64_t kVaries = -1;

  // `varies`: for each dimension, whether its size may differ; empty: none may.
  TensorGuard(const at::Tensor& tensor, std::string source, const std::vector<bool>& varies = {});

  // From now on, does not guard sizes and strides, but still the number of dimensions.
  void ignore_layout() {
    dimensions_.clear();
    fixed_layout_.clear();
  }
  void guard_offset() noexcept { guards_offset_ = true; }
  // `bytes`: the size of the storage. If `bytes` is nullopt, the storage must end with the tensor's last element.
  void guard_storage(std::optional<std::int64_t> bytes) noexcept;
  // Guards the state in which the capture found the tensor, because the code may have given the tensor a history or
  // other sizes since. If a size or stride is symbolic, changes only the guard of requires_grad.
  void expect_as(const graph::TensorMeta& captured);

  // Fills `failure`, if given, with the first property that differs.
  bool holds(const at::Tensor& tensor, GuardFailure* failure = nullptr) const;

  // Returns the index of the first guard, from `from` on, that needs holds() to decide; the number of guards if all
  // surely hold. Takes a few instructions for each guard, because a model has hundreds of parameters.
  static std::size_t first_doubtful(const std::vector<TensorGuard>& guards, const std::vector<at::Tensor>& tensors,
                                    std::size_t from) noexcept;

  const std::string& source() const noexcept { return source_; }
  // Sets the origin of the tensor's first use. Failure messages name its line.
  void set_origin(std::shared_ptr<const graph::Origin> origin) { origin_ = std::move(origin); }

 private:
  struct Dimension {
    std::int64_t size;     // kVaries: not guarded here
    std::int64_t stride;   // if follows < 0
    std::int32_t follows;  // dimension whose stride times size is this stride; -1: none
  };

  // False: holds() must decide.
  bool surely_holds(const c10::TensorImpl& impl) const noexcept;
  void prefetch(const c10::TensorImpl& impl) const noexcept;
  void fix_layout();
  bool holds_layout(const c10::TensorImpl& impl, GuardFailure* failure) const;
  bool holds_storage(const at::Tensor& tensor, GuardFailure* failure) const;
  bool fail(GuardFailure* failure, const std::string& field, std::string expected, std::string found) const;

  // The members that surely_holds() reads come first, side by side, so that they lie in one cache line or two.
  std::uint64_t key_set_;
  c10::Device device_;
  c10::ScalarType dtype_;
  bool requires_grad_;
  bool is_wrapped_number_;
  bool guards_offset_ = false;
  bool guards_storage_ = false;
  // All sizes, then all strides, if they are constant; else empty.
  std::vector<std::int64_t> fixed_layout_;

  std::int64_t dim_;
  std::int64_t storage_offset_;
  std::optional<std::int64_t> storage_bytes_;
  std::vector<Dimension> dimensions_;  // empty if sizes do not matter
  std::string source_;
  std::shared_ptr<const graph::Origin> origin_;
};

}  // namespace rehearse::compiler
