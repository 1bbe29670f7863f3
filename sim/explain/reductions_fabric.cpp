// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/checks/reductions.h>
#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/forwarding_fabric.h>
#include <rehearse_internal/comm/title.h>

#include "layers/layers.h"

namespace rehearse::sim {
namespace {

// A fabric in front of another one. It adds to `reductions` the inputs of each all-reduce that sums or averages one
// tensor of floating-point numbers. The constructor's arguments must outlive this object.
class ReductionsFabric final : public Layer, public comm::ForwardingFabric {
 public:
  ReductionsFabric(comm::Fabric& below, checks::Reductions& reductions)
      : ForwardingFabric(below), reductions_(reductions) {}

  comm::Fabric* fabric() noexcept override { return this; }
  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override { below().cancel(done); }

 private:
  void keep(const comm::Transfer& transfer);

  checks::Reductions& reductions_;
};

void ReductionsFabric::launch(const comm::Transfer& transfer, comm::Completion& done) {
  {
    const checks::Unwatched own;
    keep(transfer);
    comm::for_each_part(transfer, [this](std::size_t, const comm::Transfer& part, const auto&) { keep(part); });
  }
  below().launch(transfer, done);
}

// All ranks' calls agree, so the first one describes them.
void ReductionsFabric::keep(const comm::Transfer& transfer) {
  const auto& first = *transfer.calls.front();
  const bool adds = first.reduce_op == c10d::ReduceOp::SUM || first.reduce_op == c10d::ReduceOp::AVG;
  if (transfer.type != c10d::OpType::ALLREDUCE || !adds || first.inputs.size() != 1) return;
  if (!at::isFloatingType(first.inputs.front().scalar_type())) return;
  checks::Reductions::Call call;
  call.title = comm::short_title(comm::name_of(first), transfer.sequence, transfer.group->name);
  call.where = exec::CallSite::capture();  // the call of the rank that came last
  for (const auto* const each : transfer.calls) call.inputs.push_back(each->inputs.front());
  for (int rank = 0; rank < static_cast<int>(transfer.calls.size()); ++rank)
    call.ranks.push_back(transfer.group->global_rank(rank));
  call.is_mean = first.reduce_op == c10d::ReduceOp::AVG;
  call.is_bucket = first.payload != nullptr;
  reductions_.add(call);
}

}  // namespace

std::unique_ptr<Layer> make_reductions(const Ground& ground) {
  if (!ground.options.checks.explain) return nullptr;
  return std::make_unique<ReductionsFabric>(*ground.fabric, checks::world_checks()->reductions());
}

}  // namespace rehearse::sim
