// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/checks/non_finite.h>
#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/followed_transfers.h>
#include <rehearse_internal/comm/forwarding_fabric.h>
#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/world_local.h>

#include "layers/layers.h"

namespace rehearse::sim {
namespace {

using c10d::ReduceOp;

// True if the reduction passes an Inf on to its result. min and max do not count: correct programs start them with an
// Inf.
bool adds_up(const comm::Operation& whole) {
  const auto& call = whole.parts.empty() ? whole : whole.parts.front();
  return call.reduce_op == ReduceOp::SUM || call.reduce_op == ReduceOp::AVG || call.reduce_op == ReduceOp::PREMUL_SUM ||
         call.reduce_op == ReduceOp::PRODUCT;
}

bool compares(const comm::Operation& whole) {
  const auto& call = whole.parts.empty() ? whole : whole.parts.front();
  return call.reduce_op == ReduceOp::MIN || call.reduce_op == ReduceOp::MAX;
}

// The rank of the world that made the `index`-th call; -1: unknown.
int rank_of(const comm::Transfer& transfer, std::size_t index) {
  if (transfer.type != c10d::OpType::SEND) return transfer.group->global_rank(static_cast<int>(index));
  // Each call of a pair names the other call's rank, unless it is a receive from any rank.
  const int rank = transfer.calls[1 - index]->peer;
  return rank < 0 ? rank : transfer.group->global_rank(rank);
}

std::string title_of(const comm::Transfer& transfer) {
  return comm::short_title(comm::name_of(*transfer.calls.front()), transfer.sequence, transfer.group->name);
}

// The name that the user, or DDP, gave to the data.
std::string payload_of(const comm::Operation& call) {
  if (call.label != nullptr) return fmt::format(" ({})", *call.label);
  return call.payload != nullptr ? fmt::format(" ({})", call.payload->text) : "";
}

const at::Tensor* non_finite_of(const comm::TensorList& tensors) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), checks::has_non_finite);
  return found == tensors.end() ? nullptr : &*found;
}

// A fabric in front of another one. It looks for NaN and Inf in the inputs and outputs of transfers. If the world's
// checks ask for finite values, it ends the world in three cases: a rank passes a NaN or Inf to a sum or product; a
// rank passes a NaN to a minimum or maximum; a sum or product of finite numbers is not finite. It also notes the origin
// of each output that has a NaN or Inf (checks::Origin): for every kind of call if the checks ask for explanations,
// otherwise for sums and products. The constructor's arguments must outlive this object.
class WatchingFabric final : public comm::ForwardingFabric {
 public:
  WatchingFabric(comm::Fabric& below, checks::WorldChecks& checks);
  ~WatchingFabric() override;

  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override;

 private:
  class Watched;

  bool is_looked_at(const comm::Operation& call) const;
  checks::OriginPtr taken(const comm::Transfer& transfer);
  void check_compared(const comm::Transfer& transfer);
  void brought(const comm::Transfer& transfer, const checks::OriginPtr& taken);

  checks::WorldChecks& checks_;
  comm::FollowedTransfers<Watched> under_way_;
};

class WatchingFabric::Watched final : public comm::Completion {
 public:
  Watched(WatchingFabric& fabric, const comm::Transfer& transfer, comm::Completion& done, checks::OriginPtr taken)
      : fabric_(fabric), transfer_(transfer), done_(done), taken_(std::move(taken)) {}

  const comm::Completion& done() const noexcept { return done_; }

  void on_launched() noexcept override { done_.on_launched(); }
  void on_done() noexcept override {
    comm::Completion& done = done_;
    fabric_.brought(transfer_, taken_);
    fabric_.under_way_.release(*this);
    done.on_done();
  }
  void on_failed(std::exception_ptr why) noexcept override {
    comm::Completion& done = done_;
    fabric_.under_way_.release(*this);
    done.on_failed(std::move(why));
  }

 private:
  WatchingFabric& fabric_;
  const comm::Transfer& transfer_;
  comm::Completion& done_;
  const checks::OriginPtr taken_;
};

WatchingFabric::WatchingFabric(comm::Fabric& below, checks::WorldChecks& checks)
    : ForwardingFabric(below), checks_(checks) {}
WatchingFabric::~WatchingFabric() = default;

void WatchingFabric::launch(const comm::Transfer& transfer, comm::Completion& done) {
  below().launch(transfer, under_way_.follow(*this, transfer, done, taken(transfer)));
}

void WatchingFabric::cancel(comm::Completion& done) noexcept {
  Watched* const watched = under_way_.of(done);
  if (watched == nullptr) return below().cancel(done);
  below().cancel(*watched);
  under_way_.release(*watched);
}

// If an input has a NaN, a minimum or maximum means nothing, even if it is finite: the back end and the order of the
// ranks decide whether the NaN stays.
void WatchingFabric::check_compared(const comm::Transfer& transfer) {
  for (std::size_t index = 0; index < transfer.calls.size(); ++index) {
    const auto& inputs = transfer.calls[index]->inputs;
    const auto tensor = std::find_if(inputs.begin(), inputs.end(), checks::has_nan);
    if (tensor == inputs.end()) continue;
    const auto& call = *transfer.calls[index];
    const int rank = rank_of(transfer, index);
    const auto origin = checks_.origins().of(*tensor);
    const bool is_known = origin && origin->kind == "NaN";
    const auto op = comm::name_of((call.parts.empty() ? call : call.parts.front()).reduce_op);
    checks_.found({fmt::format("{}{} takes NaN from rank {} into a {}, which may lose it{}", title_of(transfer),
                               payload_of(call), rank, op, is_known ? ", " + origin->text() : ""),
                   {is_known ? origin->rank : rank},
                   {fmt::format("rank {} brings {}", rank, checks::nan_text(*tensor)),
                    fmt::format("whether Gloo keeps or loses a NaN in a {} depends on the order of the ranks, and NCCL "
                                "loses it: to learn whether there is one, reduce isnan().any() of each rank",
                                op)}});
    return;
  }
}

bool WatchingFabric::is_looked_at(const comm::Operation& call) const {
  return checks_.automatic().explain || adds_up(call);
}

// Finds the origin of the first NaN or Inf, in order of rank, among the inputs. Null if all inputs are finite, or if
// is_looked_at() is false for the calls.
checks::OriginPtr WatchingFabric::taken(const comm::Transfer& transfer) {
  const checks::Unwatched own;
  if (checks_.automatic().finite && compares(*transfer.calls.front())) check_compared(transfer);
  for (std::size_t index = 0; index < transfer.calls.size(); ++index) {
    const auto& call = *transfer.calls[index];
    const auto* const tensor = is_looked_at(call) ? non_finite_of(call.inputs) : nullptr;
    if (tensor == nullptr) continue;
    const int rank = rank_of(transfer, index);
    auto origin = checks_.origins().of(*tensor);
    if (!origin) {
      checks::Origin unknown;
      unknown.rank = rank;
      unknown.kind = checks::non_finite_kind(*tensor);
      unknown.made_by = "unknown code (no operator that was seen)";
      origin = std::make_shared<const checks::Origin>(std::move(unknown));
    }
    if (checks_.automatic().finite && adds_up(call)) {
      const auto from = checks_.automatic().explain ? ", " + origin->text() : "";
      checks_.found(
          {fmt::format("{}{} takes {} from rank {}{}", title_of(transfer), payload_of(call), origin->kind, rank, from),
           {origin->rank},
           {fmt::format("rank {} brings {}", rank, checks::non_finite_text(*tensor))}});
    }
    return origin;
  }
  return nullptr;
}

void WatchingFabric::brought(const comm::Transfer& transfer, const checks::OriginPtr& taken) {
  const checks::Unwatched own;
  for (std::size_t index = 0; index < transfer.calls.size(); ++index) {
    const auto& call = *transfer.calls[index];
    if (!is_looked_at(call)) continue;
    for (const auto& output : call.outputs) {
      if (!checks::has_non_finite(output)) {
        checks_.origins().clear(output);
        continue;
      }
      const int rank = rank_of(transfer, index);
      checks::Origin origin;
      if (taken) {
        origin = *taken;
        if (rank != taken->rank && origin.way.empty())
          origin.way = fmt::format("{} to rank {}", title_of(transfer), rank);
      } else {
        origin.rank = rank;
        origin.kind = checks::non_finite_kind(output);
        origin.made_by = title_of(transfer) + ", into which no rank had brought one,";
        if (checks_.automatic().finite && adds_up(call)) {
          checks_.found({fmt::format("{}{} brings {} to rank {}, and all that went into it is finite",
                                     title_of(transfer), payload_of(call), origin.kind, rank),
                         {rank},
                         {fmt::format("rank {} has {}", rank, checks::non_finite_text(output))}});
        }
      }
      checks_.origins().set(output, std::make_shared<const checks::Origin>(std::move(origin)));
    }
  }
}

class StateChecks final : public Layer {
 public:
  StateChecks(const Ground& ground, const checks::AutomaticChecks& automatic)
      : checks_(ground.executor, automatic, ground.record.checks, [this](int rank) { return label_of(rank); }) {
    if (automatic.finite || automatic.explain) watching_.emplace(*ground.fabric, checks_);
  }

  comm::Fabric* fabric() noexcept override { return watching_ ? &*watching_ : nullptr; }
  std::shared_ptr<operators::OperatorWatcher> watcher_of(int rank) override {
    return {std::shared_ptr<void>(), checks_.watcher_of(rank)};
  }
  void begin(comm::Communicators& communicators) override { communicators_ = &communicators; }
  void leave(RunRecord& record) override {
    if (record.outcome.ending == exec::Ending::all_returned) checks_.compare_what_is_left();
    for (const auto& finding : checks_.findings()) record.findings.push_back(finding);
    for (auto& line : checks_.remarks()) record.check_remarks.push_back(std::move(line));
  }

 private:
  std::string label_of(int rank) const {
    const auto* const label = communicators_ == nullptr ? nullptr : communicators_->label(rank);
    return label == nullptr ? "" : *label;
  }

  const comm::Communicators* communicators_ = nullptr;
  checks::WorldChecks checks_;
  std::optional<WatchingFabric> watching_;
  const exec::WorldLocal<checks::WorldChecks>::Lent lent_{checks_};
};

}  // namespace

std::unique_ptr<Layer> make_state_checks(const Ground& ground) {
  const auto level = ground.options.check_level;
  auto automatic = ground.options.checks;
  if (level == CheckLevel::all) automatic.replicas = automatic.finite = true;
  if (level == CheckLevel::none && !automatic.replicas.has_value()) automatic.replicas = false;
  return std::make_unique<StateChecks>(ground, automatic);
}

}  // namespace rehearse::sim
