// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/sharded_parameter.h"

namespace rehearse::parallel {

// Parameters that are gathered and freed together: one all-gather brings them, and one reduce-scatter takes their
// gradients away.
class ShardedUnit {
 public:
  struct Dtypes {
    std::optional<at::ScalarType> parameters, reduction;  // not given: that of the parameters as they are
  };

  // `path`: of the unit's module, empty for the root. `group` outlives it.
  ShardedUnit(std::string path, std::vector<NamedParameter> parameters, const ShardGroup& group, Dtypes dtypes);

  const std::string& path() const noexcept { return path_; }
  // `unit "layers.0"`, "the root unit".
  const std::string& text() const noexcept { return text_; }
  // Ranks have not compared what they shard: calls name it, so that those of other parameters are a mismatch.
  void name_parameters_in_calls();
  std::vector<ShardedParameter>& parameters() noexcept { return parameters_; }
  const std::vector<ShardedParameter>& parameters() const noexcept { return parameters_; }

  bool is_whole() const noexcept { return state_ == State::whole; }
  // Launches the all-gather, if the unit is sharded. Does not wait.
  void start_gather();
  // Waits for the all-gather, which it launches if need be, and fills the module's memory.
  void make_whole();
  // Frees the module's memory. Waits for an all-gather that nobody has used.
  void free();
  // The same after an error, and waits for nothing.
  void abandon() noexcept;

  // The whole values of all parameters, in the dtype of the shards: tensors of their own. All ranks call it; waits.
  std::vector<at::Tensor> gather_values() const;
  // The whole of tensors that are like the parameter's shards.
  at::Tensor gather_rows(const ShardedParameter& parameter, const at::Tensor& rows) const;

  // Sums of the shards' versions: another number after an optimizer's step.
  std::uint64_t version() const;
  // version() of what the module's memory has, or will have when it is filled next.
  std::uint64_t content_version() const { return state_ == State::sharded ? version() : gathered_version_; }

  bool has_gradients() const;
  // After a backward inside of no_sync(): what comes next is added up in the dtype of reductions.
  void keep_gradients();
  // Takes this rank's gradients, and launches their reduce-scatter. Does not wait.
  void start_reduce();
  bool is_reducing() const noexcept { return reduction_.has_value(); }
  // Waits for it, and adds the mean over ranks to the shards' gradients.
  void finish_reduce();

 private:
  enum class State : std::uint8_t { sharded, gathering, whole };
  struct Reduction {
    std::vector<std::size_t> parameters;  // indices, in the order in the buffer
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
  std::int64_t elements_ = 0;  // of all shards on the way
  bool is_even_ = true;
  at::ScalarType reduce_dtype_;
  State state_ = State::sharded;
  std::uint64_t gathered_version_ = 0;  // unless it is sharded
  at::Tensor gathered_;                 // while it is gathering: [ranks, elements]; undefined on one rank
  ShardGroup::WorkPtr gather_;
  std::optional<Reduction> reduction_;
};

// What the unit's methods of the same names do. If the rank has no memory left, the error says for which unit, and
// which of `all` were whole.
void make_whole(ShardedUnit& unit, const std::vector<ShardedUnit>& all);
void start_gather(ShardedUnit& unit, const std::vector<ShardedUnit>& all);
void start_reduce(ShardedUnit& unit, const std::vector<ShardedUnit>& all);

}  // namespace rehearse::parallel
