// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <rehearse/parallel/reducer_session.h>
#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/group_identity.h>

#include "parallel/lowered_parameters.h"
#include "parallel/model/bucket_names.h"
#include "parallel/model/module_state.h"
#include "parallel/model/parameter_claims.h"
#include "parallel/number_exchange.h"

namespace rehearse::parallel {

// The most demanding purpose of all forwards so far: none (there was no forward yet), outputs alone, gradients, or
// gradients that are reduced.
enum class Use : std::uint8_t { none, without_gradients, without_reduction, reduced };

// Says why the gradients of a module were never reduced, and what to do about it.
std::string unreduced_text(Use use);

// reducer_session.cpp implements the iterations. uneven_inputs.cpp implements join().
class ReducerSession::Impl {
 public:
  Impl(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
       DistributedDataParallelOptions options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  void before_forward();
  std::optional<at::ScalarType> input_dtype() const noexcept;
  bool wants_outputs() const noexcept;
  void after_forward(std::vector<at::Tensor>& outputs);
  bool set_gradient_sync(bool on) noexcept { return std::exchange(reduces_, on); }
  void join(const JoinOptions& options, const std::function<void()>& body);
  void register_comm_hook(c10d::BuiltinCommHookType hook);
  void register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook, const std::string& name);
  std::vector<at::Tensor> parameters() const { return module_parameters(*module_); }
  std::vector<GradientBucket> buckets() const;
  bool broadcasts_buffers() const noexcept { return options_.broadcast_buffers; }
  c10::DDPLoggingData logging_data() const { return logger_->get_ddp_logging_data(); }

 private:
  void set_up_reducer();
  void rebuild_buckets();
  std::string unfinished() const;  // see missing_gradients()
  void tell_joined_ranks();
  void shadow_iteration();
  void warn_of_skew() const;
  int common_rank(bool candidate) const;
  std::vector<at::Tensor> state() const;
  std::vector<at::Tensor> buffers_to_synchronize() const;
  void check_construction() const;
  void check_state(bool buffers_are_equal);
  void leave_to(checks::WorldChecks& checks) const;
  void leave_to(checks::RankRemarks& remarks) const;
  std::size_t changes_of_gradients() const;
  bool uses_sink() const noexcept;
  void watch_backward(const at::Tensor& output);

  std::shared_ptr<torch::nn::Module> module_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const comm::GroupIdentity* identity_ = nullptr;  // null if the group is not Rehearse's
  DistributedDataParallelOptions options_;
  IgnoredNames ignored_;
  ReducedParameters parameters_;
  std::optional<ParameterClaims> claims_;
  std::optional<NumberExchange> exchange_;
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  std::optional<BucketNames> bucket_names_;
  std::optional<LoweredParameters> lowered_;  // with mixed_precision

  // PyTorch's require_backward_grad_sync and require_forward_param_sync. A forward broadcasts buffers only if it is the
  // first one, or if the previous one was outside of no_sync() and had grad mode on.
  bool reduces_ = true;
  bool broadcasts_buffers_ = true;
  // For static_graph: whether the first backward has been told to reduce at its end. Shared with nodes of graphs.
  std::shared_ptr<bool> delayed_reduction_ = std::make_shared<bool>(false);
  bool lowered_by_forward_ = false;  // by the current forward
  std::optional<JoinOptions> joining_;
  std::uint64_t made_in_ = 0;  // the number of the world in which this object was made
  std::string checked_as_;     // the model's name in automatic checks; empty: no check was due yet
  Use use_ = Use::none;
  bool was_reduced_ = true;  // the reducer has all-reduced all gradients since the previous check of the replicas
  bool has_hook_ = false;    // a communication hook of the program
  std::size_t gradients_when_made_ = 0;  // see changes_of_gradients()
};

}  // namespace rehearse::parallel
