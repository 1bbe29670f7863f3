// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/parallel/fsdp_session.h>
#include <rehearse_internal/operators/guarded_storages.h>
#include <rehearse_internal/parallel/sharded_units.h>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/shard_watch.h"
#include "parallel/fsdp/sharded_unit.h"
#include "parallel/model/parameter_claims.h"

namespace rehearse::parallel {

// Gathers, frees and reduces the units of a model as its forwards and backwards use them. sharded_model.cpp implements
// the forwards, and model_backward.cpp implements the backwards.
class ShardedModel final : public operators::StorageGuard, public std::enable_shared_from_this<ShardedModel> {
 public:
  using GroupPtr = FsdpSession::GroupPtr;

  static std::shared_ptr<ShardedModel> make(std::shared_ptr<torch::nn::Module> module, GroupPtr group,
                                            GroupPtr replicas, FullyShardedOptions options);
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;
  ~ShardedModel();

  void begin_forward();
  void end_forward(std::vector<at::Tensor>& outputs);
  void fail_forward() noexcept;

  void before_use(const std::vector<Use>& uses, const c10::OperatorHandle& op) override;

  // Hooks call these right before and after autograd accumulates the gradient of a parameter.
  void before_gradient(std::size_t unit, std::size_t parameter);
  void after_gradient(std::size_t unit, std::size_t parameter);

  bool set_gradient_sync(bool on) noexcept { return std::exchange(reduces_, on); }
  void zero_grad();
  // True: other code has filled the memory of all units, and uses the module outside of any forward. False: the other
  // code has finished.
  void set_lent(bool on) noexcept { is_lent_ = on; }

  const FullyShardedOptions& options() const noexcept { return options_; }
  const torch::nn::Module& module() const noexcept { return *module_; }
  const ShardGroup& group() const noexcept { return group_; }
  std::vector<ShardedUnit>& units() noexcept { return units_; }
  const std::vector<ShardedUnit>& units() const noexcept { return units_; }
  // Throws c10::Error during a forward or backward, after a failed backward, and on any thread that did not make the
  // model.
  void require_idle(const char* call) const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // By unit: the ShardedUnit::content_version() of the values that a forward used; nullopt: it did not use the unit.
  using Versions = std::vector<std::optional<std::uint64_t>>;

  struct GuardedTensor {
    std::size_t unit, parameter;
    bool is_mark;  // the tensor that replaces a gradient after it was taken
  };

  // A backward, from its first step in this model to its end.
  struct Backward {
    std::weak_ptr<int> runs;            // expires when the engine has dropped the backward
    std::vector<std::size_t> expected;  // by unit: how many gradients autograd will accumulate
    std::vector<std::size_t> arrived;
    std::vector<bool> visited;
    std::vector<bool> stale;  // by unit: whether its values have changed since a forward of this backward
    bool knows_forward = false;
    std::size_t current = kNone;
  };

  ShardedModel(std::shared_ptr<torch::nn::Module> module, GroupPtr group, GroupPtr replicas,
               FullyShardedOptions options);
  void shard();
  void watch();
  void leave_remark() const;

  // Steps of a forward.
  void use_in_forward(std::size_t unit);
  void enter_in_forward(std::size_t unit);
  bool leave_forward() noexcept;
  void prefetch_in_forward(std::size_t unit);
  bool is_freed_by(std::size_t unit, std::size_t by) const;
  bool is_freed_after_forward(const ShardedUnit& unit) const;
  void require_usable(const char* call) const;
  void look_for_changes();
  [[noreturn]] void refuse(const GuardedTensor& guarded, const c10::OperatorHandle& op, bool is_written) const;

  // Steps of a backward.
  void enter_backward();
  void enter_backward_of(const Versions& forward);
  void follow_backward(std::size_t unit, bool is_used);
  void use_in_backward(std::size_t unit);
  void reduce(std::size_t unit);
  void finish_reduce();
  void end_backward();

  std::shared_ptr<torch::nn::Module> module_;
  FullyShardedOptions options_;
  ShardGroup group_;
  ShardWatch shard_watch_{group_};
  std::optional<ParameterClaims> claims_;
  std::vector<ShardedUnit> units_;
  std::vector<GuardedTensor> guarded_tensors_;  // by tag
  std::vector<const c10::TensorImpl*> known_;   // the module's parameters
  std::optional<operators::GuardedStorages> guarded_;
  ShardedUnits of_storages_;
  const ShardedUnits* around_ = nullptr;  // ShardedUnits::current() before the outermost forward of this model

  bool is_lent_ = false;
  bool reduces_ = true;              // applies to the next forward
  bool backward_reduces_ = true;     // reduces_ at the last forward that recorded a graph
  int depth_ = 0;                    // number of nested forwards in progress
  std::size_t current_ = kNone;      // in a forward: the unit whose code runs
  std::vector<std::size_t> in_use_;  // units whose parameters the next operator uses
  // Units in the order in which their code began, in this forward and the previous one.
  std::vector<std::size_t> order_, last_order_;
  std::size_t next_in_order_ = 0;       // index in last_order_
  std::vector<std::size_t> to_visit_;   // by the next backward, in reverse order
  std::shared_ptr<Versions> versions_;  // from the last forward that recorded a graph
  std::optional<Backward> backward_;
  std::size_t reducing_ = kNone;
};

}  // namespace rehearse::parallel
