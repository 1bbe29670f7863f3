// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include "parallel/fsdp/shard_layout.h"

namespace rehearse::parallel {

// A parameter of the module, under all names that it is registered as.
struct NamedParameter {
  std::vector<std::string> names;
  at::Tensor tensor;
  bool is_made = false;    // by from_meta: the tensor has no memory
  bool has_values = true;  // or none, until a state dict is loaded
  at::Tensor rows = {};    // this rank's, of one that is made
};

// A parameter of which each rank keeps some rows. The module's own tensor stays the same object; its memory is there
// while the unit is whole.
class ShardedParameter {
 public:
  // Takes the rank's rows of the tensor, and frees the tensor's memory. `unit`: for texts. `dtype`: of the whole.
  ShardedParameter(NamedParameter parameter, const std::string& unit, int rank, int ranks,
                   std::optional<at::ScalarType> dtype);

  const std::string& name() const noexcept { return names_.front(); }
  const std::vector<std::string>& names() const noexcept { return names_; }
  const ShardLayout& layout() const noexcept { return layout_; }
  // The module's own.
  const at::Tensor& tensor() const noexcept { return tensor_; }
  // This rank's rows: a leaf, for the optimizer.
  const at::Tensor& shard() const noexcept { return shard_; }
  // The module's memory as a tensor without history. Writing to it counts no version of the module's tensor.
  const at::Tensor& whole() const noexcept { return whole_; }
  // A state dict has been loaded.
  void note_values() noexcept { has_values_ = true; }
  // Throws c10::Error if it was made on the meta device and nothing has been loaded since.
  void require_values(const std::string& unit, const char* call) const;
  bool is_trained() const noexcept { return tensor_.requires_grad(); }

  // What adds up the whole's gradient; null for a frozen one. Kept, so that its hooks stay.
  const std::shared_ptr<torch::autograd::Node>& accumulator() const noexcept { return accumulator_; }

  void fill();
  void free();
  // While the unit is whole: throws c10::Error if somebody else has resized the memory.
  void require_filled(const std::string& unit) const;
  // Whoever asks for the elements from now on is told that the model which sharded them is gone.
  void leave(const std::string& unit);

  // The gradient that this rank has of the whole; undefined if it has none.
  at::Tensor gradient() const;
  // Takes it away. What stays in its place refuses to be read: an optimizer that has got the module's parameters would
  // skip all of them without a word, if they had no gradients.
  at::Tensor take_gradient();
  // Keeps it for a later backward, in which it is added up in this dtype.
  void keep_gradient(at::ScalarType dtype);
  // So that a gradient can come.
  void clear_mark();
  // The tensor that take_gradient() leaves.
  const at::Tensor& mark() const noexcept { return mark_; }

  // Adds this to the shard's gradient.
  void add_to_shard(const at::Tensor& gradient) const;

  // Throws c10::Error if somebody has given the module's tensor other memory, sizes, or another requires_grad.
  void require_unchanged(const std::string& unit) const;

 private:
  std::vector<std::string> names_;
  at::Tensor tensor_;
  bool trained_;
  bool has_values_;
  ShardLayout layout_;
  at::Tensor shard_, whole_, mark_;
  at::Tensor kept_;      // of backwards that reduced nothing, in another dtype than the whole
  at::Tensor replaced_;  // the memory that the module's tensor had before it got another dtype
  std::shared_ptr<torch::autograd::Node> accumulator_;
};

}  // namespace rehearse::parallel
