// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/sharded_parameter.h"

namespace rehearse::parallel {

// Parameters that are gathered and freed together: one all-gather brings their values, and one reduce-scatter reduces
// their gradients.
class ShardedUnit {
 public:
  struct Dtypes {
    // `parameters`: of whole parameters; nullopt: their own dtype. `reduction`: nullopt: the dtype of whole parameters.
    std::optional<at::ScalarType> parameters, reduction;
  };

  // `path`: the path of the unit's module; empty for the root. `group` must outlive the unit.
  ShardedUnit(std::string path, std::vector<NamedParameter> parameters, const ShardGroup& group, Dtypes dtypes);

  const std::string& path() const noexcept { return path_; }
  // `unit "layers.0"`, "the root unit".
  const std::string& text() const noexcept { return text_; }
  // Makes calls name the parameters, because ranks have not compared what they shard. Calls for different parameters
  // are then a mismatch.
  void name_parameters_in_calls();
  std::vector<ShardedParameter>& parameters() noexcept { return parameters_; }
  const std::vector<ShardedParameter>& parameters() const noexcept { return parameters_; }

  bool is_whole() const noexcept { return state_ == State::whole; }
  // Launches the all-gather if the unit is sharded. Does not wait.
  void start_gather();
  // Waits for the all-gather, which it launches if necessary, and fills the module's memory.
  void make_whole();
  // Frees the module's memory. If an all-gather is in flight, waits for it and drops its result.
  void free();
  // Like free(), but waits for nothing. Also drops a reduce-scatter that is in flight.
  void abandon() noexcept;

  // The whole values of all parameters, in the dtype of the shards, in new tensors. All ranks must call it; waits.
  std::vector<at::Tensor> gather_values() const;
  // Gathers a tensor that is sharded like the parameter. `rows`: this rank's rows of that tensor. All ranks must call
  // it; waits.
  at::Tensor gather_rows(const ShardedParameter& parameter, const at::Tensor& rows) const;

  // The sum of the shards' versions. Changes with an optimizer's step.
  std::uint64_t version() const;
  // The version() of the values that the module's memory holds or, if it is not filled, will hold after the next
  // filling.
  std::uint64_t content_version() const { return is_whole() ? gathered_version_ : version(); }

  bool has_gradients() const;
  // Call it after a backward inside no_sync(). Casts the gradients to the dtype of reductions, so that later gradients
  // are added in that dtype.
  void keep_gradients();
  // Takes this rank's gradients, and launches their reduce-scatter. Does not wait.
  void start_reduce();
  // Waits for the reduce-scatter, and adds the mean over ranks to the shards' gradients.
  void finish_reduce();

 private:
  enum class State : std::uint8_t { sharded, gathering, whole };
  struct Reduction {
    std::vector<std::size_t> parameters;  // indices, in the order of the buffer
    at::Tensor output;
    ShardGroup::WorkPtr work;
    std::string what;
  };

  void abandon_memory() noexcept;
  at::Tensor packed_shards() const;
  std::vector<std::size_t> with_gradients() const;
  std::int64_t padded_elements(const std::vector<std::size_t>& parameters) const;
  std::string gradients_text(const std::vector<std::size_t>& parameters) const;

  std::string path_, text_, parameters_text_;
  bool names_parameters_ = false;
  const ShardGroup* group_;
  std::vector<ShardedParameter> parameters_;
  std::int64_t elements_ = 0;  // total of all padded shards
  bool is_even_ = true;
  at::ScalarType reduce_dtype_;
  State state_ = State::sharded;
  std::uint64_t gathered_version_ = 0;  // valid unless the unit is sharded
  at::Tensor gathered_;                 // while gathering: [ranks, elements]; undefined in a group of one rank
  ShardGroup::WorkPtr gather_;
  std::optional<Reduction> reduction_;
};

// These functions call the unit's methods of the same names. If the rank runs out of memory, the error says for which
// unit, and which units of `all` were whole.
void make_whole(ShardedUnit& unit, const std::vector<ShardedUnit>& all);
void start_gather(ShardedUnit& unit, const std::vector<ShardedUnit>& all);
void start_reduce(ShardedUnit& unit, const std::vector<ShardedUnit>& all);

}  // namespace rehearse::parallel
