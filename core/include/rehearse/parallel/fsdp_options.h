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

// Selects the modules of a model that become units of a FullyShardedDataParallel. A unit has the parameters below its
// module, except those of units nested inside. The model itself is the root unit, with the remaining parameters. If no
// parameters are left for a unit, the unit does not exist.
class UnitPolicy {
 public:
  // `name`: the module's path, as in named_modules(): "blocks.0".
  using Predicate = std::function<bool(const std::string& name, const torch::nn::Module& module)>;

  // Only the root.
  UnitPolicy() = default;

  // The modules with these names. A name without a module is an error.
  static UnitPolicy named(std::vector<std::string> names);
  static UnitPolicy where(Predicate predicate);
  // Modules with at least this many elements of parameters, not counting units nested inside.
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

// PyTorch's MixedPrecisionPolicy. A dtype that is nullopt does not change. Shards, and therefore the optimizer, keep
// the original dtype of the module's parameters.
struct FullyShardedMixedPrecision {
  // For gathering parameters and computing with them. The module's own parameters have it from construction on.
  std::optional<at::ScalarType> param_dtype = std::nullopt;
  // For the reduction of gradients. nullopt: param_dtype.
  std::optional<at::ScalarType> reduce_dtype = std::nullopt;
  // For floating-point tensors that forward() returns.
  std::optional<at::ScalarType> output_dtype = std::nullopt;
  // Whether forward() casts floating-point tensors among its arguments to param_dtype.
  bool cast_forward_inputs = true;
};

// Gives values to parameters on the meta device (see move_to_meta()), which have none. Works on one parameter at a
// time, so that no rank ever holds the whole model.
struct FromMeta {
  // The device of the shards, and of parameters while they are whole. The module's parameters that were on the meta
  // device are on this device from construction on.
  at::Device device = at::kCPU;
  // Fills a whole parameter in place. Called on all ranks, once for each parameter, in order of modules. Null: the
  // shards have no values until you load a state dict, and until then forward() throws.
  std::function<void(const std::string& name, at::Tensor whole)> fill = nullptr;
};

struct FullyShardedOptions {
  UnitPolicy units = {};

  // Frees a unit's memory in forward, and gathers it again in backward. Forward frees the memory when code of a unit
  // begins that is not nested inside, or at its own end. nullopt: for all units but the root. If forward does not free
  // a unit's memory, backward does.
  std::optional<bool> reshard_after_forward = std::nullopt;

  // In forward, launches the all-gather of the next unit when the code of a unit begins, in the order of the previous
  // forward. Whatever this option says, backward gathers the next unit in advance, in the reverse order of the last
  // forward that recorded a graph.
  bool forward_prefetch = true;

  // Names of parameters ("encoder.0.weight") that are not sharded, and whose gradients are not reduced.
  std::vector<std::string> parameters_to_ignore = {};

  std::optional<FullyShardedMixedPrecision> mixed_precision = std::nullopt;

  std::optional<FromMeta> from_meta = std::nullopt;

  // At construction, verifies that all ranks have the same parameters, and takes the values of rank 0's parameters and
  // buffers. (PyTorch takes each rank's own rows, even if the ranks differ.)
  bool init_sync = true;
};

}  // namespace rehearse
