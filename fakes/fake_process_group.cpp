// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/fakes/fake_process_group.h>

#include <algorithm>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/chunk.h>

namespace rehearse::fakes {
namespace {

using c10d::OpType;

std::vector<at::Tensor> flat(const std::vector<std::vector<at::Tensor>>& lists) {
  std::vector<at::Tensor> tensors;
  for (const auto& list : lists) tensors.insert(tensors.end(), list.begin(), list.end());
  return tensors;
}

class DoneWork final : public c10d::Work {
 public:
  DoneWork(int rank, OpType type, std::vector<at::Tensor> outputs, int source, std::uint64_t sequence)
      : c10d::Work(rank, type), outputs_(std::move(outputs)), source_(source), sequence_(sequence) {
    finish();
  }

  bool wait(std::chrono::milliseconds) override { return true; }
  void synchronize() override {}
  void abort() override {}
  std::vector<at::Tensor> result() override { return outputs_; }
  float getDuration() const override { return 0; }
  std::uint64_t getSequencenumber() const override { return sequence_; }

  int sourceRank() const override {
    TORCH_CHECK(source_ >= 0,
                "sourceRank() may only be called on work objects that correspond to a recv or "
                "recv-from-any call.");
    return source_;
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(outputs_);
    return future;
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::AnyEnumType::get());
    future->markCompleted(c10::IValue(static_cast<std::uint8_t>(c10d::WorkResult::SUCCESS)));
    return future;
  }

 private:
  const std::vector<at::Tensor> outputs_;
  const int source_;
  const std::uint64_t sequence_;
};

void copy_to_all(const at::Tensor& output, const at::Tensor& input, int size) {
  for (auto& chunk : output.chunk(size)) chunk.copy_(input);
}

}  // namespace

FakeProcessGroup::FakeProcessGroup(int rank, int size) : c10d::Backend(rank, size) {
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "FakeProcessGroup: rank ", rank, " is out of range; a world of ", size,
                    " has ranks 0 to ", size - 1);
}

Group FakeProcessGroup::group(int rank, int size, const std::string& name) {
  auto backend = c10::make_intrusive<FakeProcessGroup>(rank, size);
  backend->setGroupUid(name);
  backend->setGroupDesc(name);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(nullptr, rank, size);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName(name);
  group->setGroupDesc(name);
  return Group(std::move(group));
}

auto FakeProcessGroup::getBackendOptions() -> c10::intrusive_ptr<Options> {
  auto options = c10::make_intrusive<Options>(getBackendName(), timeout_);
  options->group_name = getGroupUid();
  options->group_desc = getGroupDesc();
  return options;
}

auto FakeProcessGroup::done(OpType type, Tensors outputs) -> WorkPtr {
  return c10::make_intrusive<DoneWork>(rank_, type, std::move(outputs), -1, ++calls_);
}

auto FakeProcessGroup::sent_or_received(OpType type, Tensors outputs, int source) -> WorkPtr {
  return c10::make_intrusive<DoneWork>(rank_, type, std::move(outputs), source, 0);
}

auto FakeProcessGroup::broadcast(Tensors& tensors, const c10d::BroadcastOptions&) -> WorkPtr {
  return done(OpType::BROADCAST, tensors);
}

auto FakeProcessGroup::allreduce(Tensors& tensors, const c10d::AllreduceOptions&) -> WorkPtr {
  return done(OpType::ALLREDUCE, tensors);
}

auto FakeProcessGroup::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions&) -> WorkPtr {
  return done(OpType::_ALLREDUCE_SPARSE, tensors);
}

auto FakeProcessGroup::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions&) -> WorkPtr {
  return done(OpType::ALLREDUCE_COALESCED, tensors);
}

auto FakeProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions&) -> WorkPtr {
  return done(OpType::REDUCE, tensors);
}

auto FakeProcessGroup::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions&) -> WorkPtr {
  for (auto& output : outputs.at(0)) output.copy_(inputs.at(0));
  return done(OpType::ALLGATHER, outputs[0]);
}

auto FakeProcessGroup::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&)
    -> WorkPtr {
  copy_to_all(output, input, size_);
  return done(OpType::_ALLGATHER_BASE, {output});
}

auto FakeProcessGroup::allgather_coalesced(TensorLists& outputs, Tensors&, const c10d::AllgatherOptions&) -> WorkPtr {
  return done(OpType::ALLGATHER_COALESCED, flat(outputs));
}

auto FakeProcessGroup::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions&)
    -> WorkPtr {
  for (std::size_t i = 0; i < outputs.size(); ++i) copy_to_all(outputs[i], inputs.at(i), size_);
  return done(OpType::COALESCED, outputs);
}

auto FakeProcessGroup::gather(TensorLists& outputs, Tensors&, const c10d::GatherOptions&) -> WorkPtr {
  return done(OpType::GATHER, flat(outputs));
}

auto FakeProcessGroup::scatter(Tensors& outputs, TensorLists&, const c10d::ScatterOptions&) -> WorkPtr {
  return done(OpType::SCATTER, outputs);
}

auto FakeProcessGroup::reduce_scatter(Tensors& outputs, TensorLists&, const c10d::ReduceScatterOptions&) -> WorkPtr {
  return done(OpType::REDUCE_SCATTER, outputs);
}

auto FakeProcessGroup::_reduce_scatter_base(at::Tensor& output, at::Tensor&, const c10d::ReduceScatterOptions&)
    -> WorkPtr {
  return done(OpType::_REDUCE_SCATTER_BASE, {output});
}

auto FakeProcessGroup::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors&, const c10d::ReduceScatterOptions&)
    -> WorkPtr {
  return done(OpType::COALESCED, outputs);
}

auto FakeProcessGroup::alltoall_base(at::Tensor& output, at::Tensor&, std::vector<std::int64_t>&,
                                     std::vector<std::int64_t>&, const c10d::AllToAllOptions&) -> WorkPtr {
  return done(OpType::ALLTOALL_BASE, {output});
}

auto FakeProcessGroup::alltoall(Tensors& outputs, Tensors&, const c10d::AllToAllOptions&) -> WorkPtr {
  return done(OpType::ALLTOALL, outputs);
}

auto FakeProcessGroup::send(Tensors&, int, int) -> WorkPtr { return sent_or_received(OpType::SEND, {}, -1); }

auto FakeProcessGroup::recv(Tensors& tensors, int source, int) -> WorkPtr {
  return sent_or_received(OpType::RECV, tensors, source);
}

// From the lowest other rank, or from itself where there is none.
auto FakeProcessGroup::recvAnysource(Tensors& tensors, int) -> WorkPtr {
  return sent_or_received(OpType::RECVANYSOURCE, tensors, rank_ == 0 && size_ > 1 ? 1 : 0);
}

auto FakeProcessGroup::barrier(const c10d::BarrierOptions&) -> WorkPtr { return done(OpType::BARRIER, {}); }

auto FakeProcessGroup::endCoalescing() -> WorkPtr { return sent_or_received(OpType::COALESCED, {}, -1); }

auto FakeProcessGroup::split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                             const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  const auto found = std::find(ranks.begin(), ranks.end(), rank_);
  if (found == ranks.end()) return {};
  auto part =
      c10::make_intrusive<FakeProcessGroup>(static_cast<int>(found - ranks.begin()), static_cast<int>(ranks.size()));
  if (options != nullptr) {
    part->setGroupUid(options->group_name);
    part->setGroupDesc(options->group_desc);
  }
  return part;
}

auto FakeProcessGroup::merge(const c10::intrusive_ptr<c10d::Store>&, const c10::intrusive_ptr<Options>& options,
                             const int& rank, const int& size) -> BackendPtr {
  auto whole = c10::make_intrusive<FakeProcessGroup>(rank, size);
  if (options != nullptr) whole->setGroupUid(options->group_name);
  return whole;
}

auto FakeProcessGroup::shrink(const std::vector<std::int64_t>& ranks_to_exclude, int,
                              const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  std::vector<int> stay;
  for (int rank = 0; rank < size_; ++rank) {
    if (std::find(ranks_to_exclude.begin(), ranks_to_exclude.end(), rank) == ranks_to_exclude.end())
      stay.push_back(rank);
  }
  auto left = split({}, stay, options);
  TORCH_CHECK_VALUE(left != nullptr, "FakeProcessGroup::shrink: rank ", rank_,
                    " is one of those to exclude; only those that stay call it");
  return left;
}

void FakeProcessGroup::registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&&) {
  TORCH_CHECK(false, "FakeProcessGroup has no completion hooks: its calls are complete when they return");
}

}  // namespace rehearse::fakes
