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
namespace torch::optim {
class Optimizer;
}

namespace rehearse::checks {

// The rows of a whole tensor that a rank holds.
struct RowsOfWhole {
  std::vector<std::int64_t> sizes;  // sizes of the whole tensor
  std::int64_t first = 0;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_buffer = false;
  // Set for a parameter of a sharded model; nullopt: `tensor` is the whole.
  std::optional<RowsOfWhole> rows = {};
};

class ModelState;

// Puts the whole values into the module of a sharded model and returns the module's own tensors. When the returned
// state is destroyed, so is the memory of the values. Throws c10::Error if a forward or backward of the model is in
// progress.
using LendWhole = std::function<std::shared_ptr<const ModelState>(const std::vector<NamedTensor>& values)>;

// A rank's tensors with their names, for a state checker: those of a module, of a wrapper such as
// DistributedDataParallel, of an optimizer, or of a list. In the state of a module, parameters come first, and each
// tensor appears once. Shares the tensors with the model.
class ModelState {
 public:
  ModelState(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {}  // NOLINT: implicit
  ModelState(std::initializer_list<NamedTensor> tensors) : tensors_(tensors) {}   // NOLINT: implicit
  ModelState(const torch::nn::Module& module);                                    // NOLINT: implicit
  ModelState(const torch::nn::Module& module, const std::vector<std::string>& left_out);

  // Copies of an optimizer's options and of its state of each parameter: "options of group 0.lr", "state of parameter
  // 2.exp_avg". Without lists, which only LBFGS has. Throws c10::Error if the optimizer's state cannot be serialized.
  ModelState(const torch::optim::Optimizer& optimizer);  // NOLINT: implicit

  // From a DistributedDataParallel, without the parameters and buffers that it ignores.
  template <class Ddp>
    requires requires(const Ddp& ddp) { ddp.module(), ddp.bucket_options().ignored, ddp.broadcasts_buffers(); }
  ModelState(const Ddp& ddp) : ModelState(ddp.module(), ddp.bucket_options().ignored) {  // NOLINT: implicit
    rebroadcast_ = ddp.broadcasts_buffers();
  }

  // From a FullyShardedDataParallel: this rank's shards, the ignored parameters, and the buffers.
  template <class Sharded>
    requires requires(const Sharded& sharded) {
      { sharded.checked_state() } -> std::same_as<ModelState>;
    }
  ModelState(const Sharded& sharded) : ModelState(sharded.checked_state()) {}  // NOLINT: implicit
  ModelState(std::vector<NamedTensor> tensors, LendWhole lend)
      : tensors_(std::move(tensors)), lend_whole_(std::move(lend)) {}

  // From a module holder.
  template <class Holder>
    requires requires(const Holder& holder) {
      typename Holder::ContainedType;
      holder.ptr();
    }
  ModelState(const Holder& holder) : ModelState(*holder.ptr()) {}  // NOLINT: implicit

  template <class Module>
  ModelState(const std::shared_ptr<Module>& module) : ModelState(*module) {}  // NOLINT: implicit

  const std::vector<NamedTensor>& tensors() const noexcept { return tensors_; }

  // Empty if the model is not sharded.
  const LendWhole& lend_whole() const noexcept { return lend_whole_; }

  // Drops the buffers if `wanted` is false, or if `wanted` is nullopt and the next forward broadcasts them.
  ModelState with_buffers(std::optional<bool> wanted) const;

 private:
  std::vector<NamedTensor> tensors_;
  LendWhole lend_whole_;
  // True if each forward broadcasts one rank's buffers, so that they may differ between forwards.
  bool rebroadcast_ = false;
};

}  // namespace rehearse::checks
