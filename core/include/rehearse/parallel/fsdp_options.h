// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace torch::nn {
class Module;
}

namespace rehearse {

// Which modules of a model are units of a FullyShardedDataParallel. A unit has the parameters below its module that no
// unit inside has; the model itself is a unit, the root, with what is left.
class UnitPolicy {
 public:
  // `name`: the module's path, as in named_modules(): "blocks.0".
  using Predicate = std::function<bool(const std::string& name, const torch::nn::Module& module)>;

  // The root alone.
  UnitPolicy() = default;

  // These modules. A name that no module has is refused.
  static UnitPolicy named(std::vector<std::string> names);
  static UnitPolicy where(Predicate predicate);
  // Modules with at least so many elements of parameters that no unit inside has.
  static UnitPolicy of_size(std::int64_t least_elements);
  // Modules of these classes: UnitPolicy::of_type<BlockImpl>().
  template <class... Modules>
  static UnitPolicy of_type() {
    return where([](const std::string&, const torch::nn::Module& module) {
      return ((dynamic_cast<const Modules*>(&module) != nullptr) || ...);
    });
  }

  const std::vector<std::string>& names() const noexcept { return names_; }
  const Predicate& predicate() const noexcept { return predicate_; }
  const std::optional<std::int64_t>& least_elements() const noexcept { return least_elements_; }

 private:
  std::vector<std::string> names_;
  Predicate predicate_;
  std::optional<std::int64_t> least_elements_;
};

// PyTorch's MixedPrecisionPolicy. What is not given stays as it is. Shards, and so the optimizer, keep the dtype that
// the module's parameters had.
struct FullyShardedMixedPrecision {
  // In which parameters are gathered and computed with. The module's own parameters have it from construction on.
  std::optional<at::ScalarType> param_dtype = std::nullopt;
  // In which gradients are added up. Not given: param_dtype.
  std::optional<at::ScalarType> reduce_dtype = std::nullopt;
  // The dtype of floating-point tensors that forward() returns.
  std::optional<at::ScalarType> output_dtype = std::nullopt;
  // Are floating-point tensors among forward()'s arguments cast to param_dtype?
  bool cast_forward_inputs = true;
};

// How parameters on the meta device (see move_to_meta()), which have no values, come to have some. They are made one at
// a time, so that no rank ever has the whole model.
struct FromMeta {
  // Where shards are made, and parameters while they are whole. The module's tensors are there from construction on.
  at::Device device = at::kCPU;
  // Fills a whole parameter in place. Called on all ranks, once for each parameter, in order of modules. Not given: the
  // shards have no values until a state dict is loaded, and forward() is refused.
  std::function<void(const std::string& name, at::Tensor whole)> fill = nullptr;
};

struct FullyShardedOptions {
  UnitPolicy units = {};

  // Free a unit's memory in forward, when code of another unit begins, and gather it again in backward. Not given: all
  // units but the root. Parameters of a unit that stays whole are freed in backward.
  std::optional<bool> reshard_after_forward = std::nullopt;

  // In forward, launch the all-gather of the next unit when the code of a unit begins; in the order of the forward
  // before. Backward always does, in the order of its own forward.
  bool forward_prefetch = true;

  // Names of parameters ("encoder.0.weight") that stay as they are, on every rank, and whose gradients nobody reduces.
  std::vector<std::string> parameters_to_ignore = {};

  std::optional<FullyShardedMixedPrecision> mixed_precision = std::nullopt;

  // For a module that has parameters on the meta device.
  std::optional<FromMeta> from_meta = std::nullopt;

  // At construction, take the parameters and buffers of rank 0. (PyTorch takes each rank's own rows, whatever the ranks
  // have.)
  bool init_sync = true;
};

}  // namespace rehearse
