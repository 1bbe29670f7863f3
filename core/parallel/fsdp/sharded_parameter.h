// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::parallel {

// Divides a tensor along dimension 0 into the shards of a group's ranks, as torch.chunk() does. Each of the first ranks
// has `chunk` rows, the next rank has the remainder, and further ranks have none. In collectives every shard is padded
// to `chunk` rows.
class ShardLayout {
 public:
  // `sizes`: at least one dimension.
  ShardLayout(at::IntArrayRef sizes, int ranks);

  std::int64_t first_row(int rank) const;
  std::int64_t rows_of(int rank) const;
  std::vector<std::int64_t> shard_sizes(int rank) const;
  const std::vector<std::int64_t>& sizes() const noexcept { return sizes_; }
  // Elements of a padded shard.
  std::int64_t padded_elements() const noexcept { return chunk_ * row_elements_; }
  bool is_even() const noexcept { return chunk_ * ranks_ == sizes_[0]; }

  // copy_out() copies from `buffer` to `whole`, copy_in() from `whole` to `buffer`. `buffer`: [ranks, elements]; the
  // tensor's elements begin at `offset`. `whole`: contiguous, with the sizes of sizes().
  void copy_out(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const;
  void copy_in(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole) const;

 private:
  // Calls `copy(part of whole, part of buffer)` with parts of equal sizes, for all elements.
  template <class Copy>
  void for_each_part(const at::Tensor& buffer, std::int64_t offset, const at::Tensor& whole, Copy&& copy) const;

  std::vector<std::int64_t> sizes_;
  std::int64_t ranks_, row_elements_, chunk_;
};

// A parameter of the module, under all of its registered names.
struct NamedParameter {
  std::vector<std::string> names;
  at::Tensor tensor;
  bool is_made = false;    // made by from_meta: the tensor has no memory
  bool has_values = true;  // false: made without values; a state dict must be loaded
  at::Tensor rows = {};    // if is_made: this rank's rows
};

// A parameter whose rows are distributed over the ranks. The module's own tensor stays the same object; it has memory
// while the unit is whole.
class ShardedParameter {
 public:
  // Takes `parameter.rows` if from_meta made them; otherwise copies the rank's rows of the tensor. Then frees the
  // tensor's memory. `unit`: for texts. `dtype`: the dtype of the whole; nullopt: the tensor's own.
  ShardedParameter(NamedParameter parameter, const std::string& unit, int rank, int ranks,
                   std::optional<at::ScalarType> dtype);

  const std::string& name() const noexcept { return names_.front(); }
  const std::vector<std::string>& names() const noexcept { return names_; }
  const ShardLayout& layout() const noexcept { return layout_; }
  // The module's own tensor.
  const at::Tensor& tensor() const noexcept { return tensor_; }
  // This rank's rows, as a leaf tensor for the optimizer.
  const at::Tensor& shard() const noexcept { return shard_; }
  // The module's memory as a tensor without history. Writing to it does not raise the version of the module's tensor.
  const at::Tensor& whole() const noexcept { return whole_; }
  // Call it after a state dict has been loaded.
  void note_values() noexcept { has_values_ = true; }
  // Throws c10::Error if the parameter was made on the meta device without from_meta.fill, and nothing has been loaded
  // since.
  void require_values(const std::string& unit, const char* call) const;
  bool is_trained() const noexcept { return tensor_.requires_grad(); }

  // Takes over a change of requires_grad of the module's tensor or of the shard. Returns whether there was one.
  bool follow_requires_grad();

  // The node that accumulates the whole's gradient, also for a frozen parameter; null if its dtype has no gradients.
  // Kept alive, so that its hooks stay.
  const libtorch::NodePtr& accumulator() const noexcept { return accumulator_; }

  void fill();
  void free();
  // Call it while the unit is whole. Throws c10::Error if other code has resized the memory.
  void require_filled(const std::string& unit) const;
  // Call it when the model is destroyed. Later access to the elements throws an error that names the destroyed
  // FullyShardedDataParallel as the reason.
  void leave(const std::string& unit);

  // This rank's gradient of the whole; undefined if there is none. Leaves out what keep_gradient() has kept in another
  // dtype if a later backward has made a gradient, too.
  at::Tensor gradient() const;
  // Removes and returns the gradient. Leaves a mark in place of the gradient; reading the mark throws. Without the
  // mark, an optimizer that was made with the module's parameters would silently skip all of them.
  at::Tensor take_gradient();
  // Keeps the gradient for a later backward, which adds to it in this dtype.
  void keep_gradient(at::ScalarType dtype);
  // Removes the mark, so that a gradient can be accumulated.
  void clear_mark();
  // The tensor that take_gradient() leaves behind.
  const at::Tensor& mark() const noexcept { return mark_; }

  void add_to_shard(const at::Tensor& gradient) const;

  // Throws c10::Error if other code has given the module's tensor other memory or other sizes.
  void require_unchanged(const std::string& unit) const;

 private:
  std::vector<std::string> names_;
  at::Tensor tensor_;
  bool trained_;
  bool has_values_;
  ShardLayout layout_;
  at::Tensor shard_, whole_, mark_;
  at::Tensor kept_;      // gradient from backwards inside no_sync(), if reductions use another dtype than the whole
  at::Tensor replaced_;  // the original memory of the module's tensor, before its dtype changed
  libtorch::NodePtr accumulator_;
};

}  // namespace rehearse::parallel
