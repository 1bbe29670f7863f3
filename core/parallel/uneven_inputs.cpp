// SPDX-License-Identifier: BSD-3-Clause
// join(), after torch/distributed/algorithms/join.py and DDP's join hook.
#include <functional>
#include <utility>

#include "parallel/reducer_session_impl.h"

namespace rehearse::parallel {
namespace {

constexpr int kSkewToWarnOf = 1000;

struct Finally {
  std::function<void()> run;
  ~Finally() { run(); }
};

}  // namespace

void ReducerSession::Impl::join(const JoinOptions& options, const std::function<void()>& body) {
  TORCH_CHECK(!joining_, "DistributedDataParallel: join() inside of join()");
  logger_->set_uneven_input_join();
  joining_ = options;
  const Finally leave{[this] {
    joining_.reset();
    reducer_->set_forward_pass_work_handle({}, /*useStaticWorldSize=*/true);
  }};
  body();
  int shadowed = 0;
  // Each active rank adds 1 in tell_joined_ranks(), and each joined rank adds 0, so the sum is the number of active
  // ranks.
  while (exchange_->sum(0) > 0) {
    if (options.throw_on_early_termination) {
      // Answers the second sum of tell_joined_ranks(), so that the active ranks throw, too.
      exchange_->sum(1);
      TORCH_CHECK(false, "Rank ", group_->getRank(), " exhausted all inputs.");
    }
    if (shadowed++ == kSkewToWarnOf) warn_of_skew();
    shadow_iteration();
  }
  // The last rank to join has seen all updates.
  broadcast_state(group_, state(), common_rank(shadowed == 0));
}

// Does what Join.notify_join_context() does: tells joined ranks that this rank still has inputs.
void ReducerSession::Impl::tell_joined_ranks() {
  const auto active = exchange_->start_sum(1);
  active->wait();
  TORCH_CHECK(!joining_->throw_on_early_termination || exchange_->sum(0) == 0,
              "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
  reducer_->set_forward_pass_work_handle(active, joining_->divide_by_initial_world_size);
}

// Does what _DDPJoinHook.main_hook() does: the ranks that have inputs make an iteration, and this rank only takes part
// in its collectives.
void ReducerSession::Impl::shadow_iteration() {
  rebuild_buckets();
  if (auto buffers = buffers_to_synchronize(); !buffers.empty()) {
    broadcast_state(group_, std::move(buffers), common_rank(false));
  }
  // The active ranks say in before_forward() whether this iteration reduces gradients.
  broadcasts_buffers_ = exchange_->sum(0) > 0;
  if (!broadcasts_buffers_) return;
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> reductions;
  auto buckets = reducer_->get_grad_buckets(/*return_zero_tensors=*/true);
  for (auto& bucket : buckets) reductions.push_back(reducer_->run_comm_hook(bucket));
  for (const auto& reduction : reductions) reduction->waitAndThrow();
  if (options_.find_unused_parameters) {
    std::vector<at::Tensor> used = {reducer_->get_local_used_map_on_device()};
    group_->allreduce(used)->wait();
  }
  reducer_->push_rebuilt_params_for_all_indices();
}

void ReducerSession::Impl::warn_of_skew() const {
  TORCH_WARN("Detected uneven input skew of greater than ", kSkewToWarnOf, ". This means that rank ", group_->getRank(),
             " has at least ", kSkewToWarnOf,
             " fewer inputs than other currently-active ranks. This level of skew could lead to "
             "performance degradation during training.");
}

// The highest of the candidate ranks; there must be at least one.
int ReducerSession::Impl::common_rank(bool candidate) const {
  const std::int64_t highest = exchange_->max(candidate ? group_->getRank() : -1);
  TORCH_CHECK(0 <= highest && highest < group_->getSize(), "DistributedDataParallel: rank ", group_->getRank(),
              " learned that the state is that of rank ", highest,
              "; the group has no such rank: what a rank sent was damaged");
  return static_cast<int>(highest);
}

}  // namespace rehearse::parallel
