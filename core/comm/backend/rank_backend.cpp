// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/rank_backend.h>

#include <array>
#include <string>
#include <utility>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/this_rank.h>

#include "comm/call/host_view.h"
#include "comm/group/group_world.h"
#include "comm/work/coalesced_work.h"
#include "timeout_extension.h"

namespace rehearse::comm {
namespace {

// Sends, and receives from any source, race for what the receiver gets next.
void preempt_message(const GroupIdentity& group, int rank, const Operation& call) {
  if (call.type != c10d::OpType::SEND && call.type != c10d::OpType::RECVANYSOURCE) return;
  if (!exec::this_rank::preempts()) return;
  const int receiver = group.global_rank(call.type == c10d::OpType::SEND ? call.peer : rank);
  exec::this_rank::preempt(exec::this_rank::access_to("messages", std::to_string(receiver), true));
}

}  // namespace

RankBackend::RankBackend(c10::intrusive_ptr<GroupState> group, int rank, std::chrono::milliseconds timeout)
    : DescribedBackend(rank, group->size(), timeout), group_(std::move(group)) {}

RankBackend::~RankBackend() = default;

const GroupIdentity& RankBackend::identity() const noexcept { return group_->identity(); }

void RankBackend::name_payload(const at::Tensor& tensor, const std::string& name) {
  group_->world().payloads.name(identity().global_rank(rank_), tensor, name);
}

void RankBackend::forget_payload(const c10::TensorImpl* tensor) noexcept {
  if (!group_->closed()) group_->world().payloads.forget(identity().global_rank(rank_), tensor);
}

std::uint64_t RankBackend::getSequenceNumberForGroup() { return group_->collectives().calls_of(rank_); }

c10::intrusive_ptr<RankWork> RankBackend::make(const Called& called) {
  require_allowed(called.type);
  exec::this_rank::begin_call();
  auto work = c10::make_intrusive<RankWork>(group_, rank_, called.type);
  work->operation.async_op = called.async_op;
  auto& limit = work->operation.timeout;
  limit = timeout_of(called);
  if (extension_ != nullptr && limit.count() > 0) [[unlikely]] {
    limit += extension_->of_next();
    extension_->begun(work);
  }
  return work;
}

void RankBackend::submit_to_group(const c10::intrusive_ptr<RankWork>& work) {
  preempt_message(identity(), rank_, work->operation);
  try {
    group_->submit(work);
  } catch (...) {
    exec::this_rank::fail_call(std::current_exception());
    group_->note_failure_known(rank_);
    throw;
  }
  exec::this_rank::end_call();
}

auto RankBackend::call(const Called& called, Describe describe, c10::function_ref<Replay()>) -> WorkPtr {
  auto work = make(called);
  describe(work->operation);
  if (is_on_private_device(work->operation)) [[unlikely]]
    run_on_host(work->operation);
  if (coalesced_ != nullptr) [[unlikely]]
    return gather(std::move(work));
  submit_to_group(work);
  return work;
}

auto RankBackend::gather(c10::intrusive_ptr<RankWork> work) -> WorkPtr {
  group_->check(*work);
  gathered_.push_back(std::move(work));
  if (group_->world().options.call_sites) {
    std::array<void*, exec::CallSite::kFramesMax> stack;
    const auto frames = exec::CallSite::capture_to(stack);
    gathered_at_.emplace_back(stack.begin(), stack.begin() + frames);
  }
  exec::this_rank::end_call();
  return coalesced_;
}

}  // namespace rehearse::comm
