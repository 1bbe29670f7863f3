// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/fakes/fake_fabric.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include <ATen/EmptyTensor.h>

#include <rehearse_internal/exec/check.h>

#include "workspace.h"

namespace rehearse::fakes {
namespace {

using comm::Operation;

Extent extent_of(const at::Tensor& tensor) {
  return extent(input_region(tensor), tensor.numel(), tensor.dtype().itemsize());
}

bool has_memory(const at::Tensor& tensor) { return !tensor.is_sparse() && tensor.numel() > 0; }

// The memory that earlier parts write.
class Written {
 public:
  void add(const at::Tensor& tensor) {
    if (!has_memory(tensor)) return;
    auto [begin, end] = extent_of(tensor);
    auto span = first_that_ends_after(begin);
    while (span != spans_.end() && !std::less<>{}(end, span->first)) {
      begin = std::min(begin, span->first, std::less<>{});
      end = std::max(end, span->second, std::less<>{});
      span = spans_.erase(span);
    }
    spans_.emplace(begin, end);
  }

  bool touches(const at::Tensor& tensor) const {
    if (!has_memory(tensor)) return false;
    const auto [begin, end] = extent_of(tensor);
    const auto span = first_that_ends_after(begin);
    return span != spans_.end() && std::less<>{}(span->first, end);
  }

 private:
  using Spans = std::map<const std::byte*, const std::byte*>;  // begin to end; spans do not overlap

  Spans::const_iterator first_that_ends_after(const std::byte* begin) const {
    auto span = spans_.upper_bound(begin);
    if (span != spans_.begin() && std::less<>{}(begin, std::prev(span)->second)) --span;
    return span;
  }

  Spans spans_;
};

// Copies raw memory, because this may run in any rank's context: it must dispatch no operator there.
at::Tensor contiguous_copy_of(const at::Tensor& tensor) {
  at::Tensor copy = at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type());
  auto* const to = static_cast<std::byte*>(copy.unsafeGetTensorImpl()->mutable_data());
  gather(to, input_region(tensor), tensor.numel(), tensor.dtype().itemsize());
  return copy;
}

bool is_in_place(const Operation& part) {
  return part.inputs.size() == 1 && part.outputs.size() == 1 && part.inputs[0].is_same(part.outputs[0]);
}

// True if a call that works in place leaves a result in this rank's tensor.
bool is_written(const Operation& part, std::size_t rank) {
  const bool is_root = part.root == static_cast<int>(rank);
  if (part.type == c10d::OpType::BROADCAST) return !is_root;
  return part.type != c10d::OpType::REDUCE || is_root;
}

// A part of a rank's call, with copies in place of the inputs that earlier parts overwrite.
struct StandIn {
  std::size_t part;
  std::size_t rank;
  Operation call;
};

void add_stand_ins(const Operation& call, std::size_t rank, std::vector<StandIn>& stand_ins) {
  Written written;
  for (std::size_t i = 0; i < call.parts.size(); ++i) {
    const Operation& part = call.parts[i];
    const auto touched = [&written](const at::Tensor& tensor) { return written.touches(tensor); };
    if (std::ranges::any_of(part.inputs, touched)) {
      StandIn& stand_in = stand_ins.emplace_back(StandIn{i, rank, part});
      for (at::Tensor& input : stand_in.call.inputs) {
        if (touched(input)) input = contiguous_copy_of(input);
      }
      if (is_in_place(part)) stand_in.call.outputs[0] = stand_in.call.inputs[0];
    }
    for (const at::Tensor& output : part.outputs) written.add(output);
  }
}

void write_back(const StandIn& stand_in, const Operation& part) {
  if (!is_in_place(part) || !is_written(part, stand_in.rank)) return;
  const at::Tensor& result = stand_in.call.outputs[0];
  if (result.numel() == 0) return;
  const auto* const from = static_cast<const std::byte*>(result.unsafeGetTensorImpl()->data());
  store(output_region(part.outputs[0]), from, result.numel(), result.dtype().itemsize());
}

std::int64_t elements_of(const Operation& call) {
  std::int64_t elements = 0;
  for (const at::Tensor& input : call.inputs) {
    if (!input.is_sparse()) elements += input.numel();
  }
  return elements;
}

// Carries out the parts of a transfer in order. Gloo first flattens all inputs into its own memory. To match that,
// every part reads what its tensors held before the first part wrote anything. Thus, if a tensor occurs in two parts,
// it ends with the sum of the original values, not with a sum of sums.
void move_parts(const comm::Transfer& transfer, Workspace& workspace) {
  std::vector<StandIn> stand_ins;
  for (std::size_t r = 0; r < transfer.calls.size(); ++r) add_stand_ins(*transfer.calls[r], r, stand_ins);
  workspace.other_parts = {0, elements_of(*transfer.calls.front())};
  comm::for_each_part(transfer, [&](std::size_t i, const comm::Transfer& part, std::span<Operation*> calls) {
    for (StandIn& stand_in : stand_ins) {
      if (stand_in.part == i) calls[stand_in.rank] = &stand_in.call;
    }
    const std::int64_t elements = elements_of(*calls.front());
    workspace.other_parts.after -= elements;
    move_call(part, workspace);
    workspace.other_parts.before += elements;
    for (const StandIn& stand_in : stand_ins) {
      if (stand_in.part == i) write_back(stand_in, transfer.calls[stand_in.rank]->parts[i]);
    }
  });
}

}  // namespace

// A launched transfer that waits for the end of its time.
class FakeFabric::Pending final : public exec::Timer {
 public:
  explicit Pending(FakeFabric& fabric) : fabric_(fabric) {}

  const comm::Transfer* transfer = nullptr;
  comm::Completion* done = nullptr;
  std::size_t index = 0;  // index in the pool

 private:
  void fire() override { fabric_.finish(*this); }

  FakeFabric& fabric_;
};

FakeFabric::FakeFabric(exec::TimerQueue& timers, exec::Clock& clock, const CostModel& costs)
    : timers_(timers), clock_(clock), costs_(costs), workspace_(std::make_unique<Workspace>()) {}

FakeFabric::~FakeFabric() {
  for (std::size_t i = 0; i < in_flight_; ++i) timers_.cancel(*pool_[i]);
}

std::size_t FakeFabric::pending() const noexcept { return in_flight_; }

void FakeFabric::ask_before_moving(MoveInterceptor& interceptor) noexcept {
  REHEARSE_CHECK(interceptor_ == nullptr, in_flight_);
  interceptor_ = &interceptor;
}

bool FakeFabric::move(const comm::Transfer& transfer) {
  if (interceptor_ != nullptr && !interceptor_->may_move(transfer)) return false;
  if (!transfer.calls.front()->parts.empty()) {
    move_parts(transfer, *workspace_);
  } else {
    move_call(transfer, *workspace_);
  }
  return true;
}

void FakeFabric::launch(const comm::Transfer& transfer, comm::Completion& done) {
  const auto due = clock_.now() + std::max(costs_.duration(transfer), VirtualDuration::zero());
  if (due <= clock_.now()) {
    if (move(transfer)) done.on_complete();
    return;
  }
  if (in_flight_ == pool_.size()) {
    pool_.push_back(std::make_unique<Pending>(*this));
    pool_.back()->index = in_flight_;
  }
  Pending& pending = *pool_[in_flight_];
  timers_.arm(pending, due);
  ++in_flight_;
  pending.transfer = &transfer;
  pending.done = &done;
}

// Keeps the transfers in flight at the front of the pool.
void FakeFabric::release(Pending& pending) noexcept {
  const std::size_t index = pending.index;
  REHEARSE_CHECK(index < in_flight_ && pool_[index].get() == &pending, index, in_flight_);
  --in_flight_;
  std::swap(pool_[index], pool_[in_flight_]);
  pool_[index]->index = index;
  pool_[in_flight_]->index = in_flight_;
}

void FakeFabric::finish(Pending& pending) {
  const comm::Transfer& transfer = *pending.transfer;
  comm::Completion& done = *pending.done;
  // Release first, because on_complete() may launch the next transfer.
  release(pending);
  if (move(transfer)) done.on_complete();
}

void FakeFabric::cancel(comm::Completion& done) noexcept {
  for (std::size_t i = 0; i < in_flight_; ++i) {
    if (pool_[i]->done != &done) continue;
    timers_.cancel(*pool_[i]);
    release(*pool_[i]);
    return;
  }
}

}  // namespace rehearse::fakes
