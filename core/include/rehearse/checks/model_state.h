// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
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

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_buffer = false;
};

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

  // Without its buffers where `wanted` is false, or says nothing and the next forward broadcasts them.
  ModelState with_buffers(std::optional<bool> wanted) const;

 private:
  std::vector<NamedTensor> tensors_;
  bool rebroadcast_ = false;  // its buffers are those of one rank at each forward, and their own in between
};

}  // namespace rehearse::checks
