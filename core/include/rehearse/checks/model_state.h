// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace rehearse::checks {

// Which rows of a whole tensor a rank has.
struct RowsOfWhole {
  std::vector<std::int64_t> sizes;  // of the whole
  std::int64_t first = 0;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_buffer = false;
  std::optional<RowsOfWhole> rows = {};  // of a sharded model's parameter; nothing: it is the whole
};

class ModelState;

// Puts whole values into a sharded model's module, and gives the module's own tensors. Once those are gone, so is the
// memory of the values. Throws std::logic_error where the model is under way.
using LendWhole = std::function<std::shared_ptr<const ModelState>(const std::vector<NamedTensor>& values)>;

// A rank's tensors under their names, to be looked at by a state checker: those of a module, of what wraps one (a
// DistributedDataParallel), or a list. Parameters come first, each tensor once. It shares the tensors.
class ModelState {
 public:
  ModelState(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {}  // NOLINT: implicit
  ModelState(std::initializer_list<NamedTensor> tensors) : tensors_(tensors) {}   // NOLINT: implicit
  ModelState(const torch::nn::Module& module);                                    // NOLINT: implicit
  ModelState(const torch::nn::Module& module, const std::vector<std::string>& left_out);

  // A DistributedDataParallel: without what it was told to ignore.
  template <class Ddp>
    requires requires(const Ddp& ddp) { ddp.module(), ddp.bucket_options().ignored, ddp.broadcasts_buffers(); }
  ModelState(const Ddp& ddp) : ModelState(ddp.module(), ddp.bucket_options().ignored) {  // NOLINT: implicit
    rebroadcast_ = ddp.broadcasts_buffers();
  }

  // A FullyShardedDataParallel: this rank's shards, what is ignored, and buffers.
  template <class Sharded>
    requires requires(const Sharded& sharded) {
      { sharded.checked_state() } -> std::same_as<ModelState>;
    }
  ModelState(const Sharded& sharded) : ModelState(sharded.checked_state()) {}  // NOLINT: implicit
  ModelState(std::vector<NamedTensor> tensors, LendWhole lend)
      : tensors_(std::move(tensors)), lend_whole_(std::move(lend)) {}

  // A module holder.
  template <class Holder>
    requires requires(const Holder& holder) {
      typename Holder::ContainedType;
      holder.ptr();
    }
  ModelState(const Holder& holder) : ModelState(*holder.ptr()) {}  // NOLINT: implicit

  template <class Module>
  ModelState(const std::shared_ptr<Module>& module) : ModelState(*module) {}  // NOLINT: implicit

  const std::vector<NamedTensor>& tensors() const noexcept { return tensors_; }

  // Empty: the model is not sharded.
  const LendWhole& lend_whole() const noexcept { return lend_whole_; }

  // Without its buffers where `wanted` is false, or says nothing and the next forward broadcasts them.
  ModelState with_buffers(std::optional<bool> wanted) const;

 private:
  std::vector<NamedTensor> tensors_;
  LendWhole lend_whole_;
  bool rebroadcast_ = false;  // its buffers are those of one rank at each forward, and their own in between
};

}  // namespace rehearse::checks
