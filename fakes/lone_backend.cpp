// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/fakes/lone_backend.h>

#include <algorithm>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/chunk.h>
#include <rehearse/fakes/lone_group.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/operators/noted_group.h>

namespace rehearse::fakes {
namespace {

using c10d::OpType;

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

void copy_to_each_rank(const comm::Operation& call, int size) {
  for (auto& of_rank : call.outputs.front().chunk(size)) of_rank.copy_(call.inputs.front());
}

void copy_what_fits(const at::Tensor& output, const at::Tensor& input) {
  const auto numel = std::min(output.numel(), input.numel());
  output.zero_();
  output.view({-1}).narrow(0, 0, numel).copy_(input.view({-1}).narrow(0, 0, numel));
}

bool gathers(const comm::Operation& call) {
  return call.type == OpType::ALLGATHER || call.type == OpType::_ALLGATHER_BASE ||
         (call.type == OpType::COALESCED && call.tag == comm::Operation::kAllgatherIntoTensor);
}

// Fills the outputs as if all ranks passed this rank's input, for the calls for which torch's back end "fake" does so.
void fill_outputs(const comm::Operation& call, int rank, int size) {
  if (!libtorch::kFakeGroupsFillOutputs && !gathers(call)) return;
  for (const auto& part : call.parts) fill_outputs(part, rank, size);
  switch (call.type) {
    case OpType::ALLGATHER:
    case OpType::GATHER:
      for (const auto& output : call.outputs) output.copy_(call.inputs.front());
      break;
    case OpType::_ALLGATHER_BASE:
      return copy_to_each_rank(call, size);
    case OpType::SCATTER:  // only the root has inputs
    case OpType::REDUCE_SCATTER:
      if (!call.inputs.empty()) call.outputs.front().copy_(call.inputs[static_cast<std::size_t>(rank)]);
      break;
    case OpType::_REDUCE_SCATTER_BASE:
      call.outputs.front().copy_(call.inputs.front().chunk(size)[static_cast<std::size_t>(rank)]);
      break;
    case OpType::ALLTOALL_BASE:
      return copy_what_fits(call.outputs.front(), call.inputs.front());
    case OpType::ALLTOALL:
      for (std::size_t i = 0; i < call.outputs.size(); ++i) copy_what_fits(call.outputs[i], call.inputs[i]);
      break;
    default:
      break;
  }
}

comm::GroupIdentity identity_of(int size, const std::string& name) {
  return {.id = 0, .name = name, .ranks = ranks_below(size)};
}

int checked_rank(int rank, int size) {
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "lone_group: rank ", rank, " is out of range; a world of ", size,
                    " has ranks 0 to ", size - 1);
  return rank;
}

c10::intrusive_ptr<LoneBackend> named_by(const c10::intrusive_ptr<c10d::Backend::Options>& options, int rank,
                                         int size) {
  const std::string name = options != nullptr ? options->group_name : "";
  auto backend = c10::make_intrusive<LoneBackend>(rank, size, name);
  backend->setGroupUid(name);
  backend->setGroupDesc(options != nullptr ? options->group_desc : "");
  return backend;
}

}  // namespace

LoneBackend::LoneBackend(int rank, int size, const std::string& name)
    : DescribedBackend(checked_rank(rank, size), size, kBackendDefaultTimeout), identity_(identity_of(size, name)) {}

Group lone_group(int rank, int size, const std::string& name) {
  auto backend = c10::make_intrusive<LoneBackend>(rank, size, name);
  backend->setGroupUid(name);
  backend->setGroupDesc(name);
  auto group = c10::make_intrusive<operators::NotedGroup>(nullptr, rank, size);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  group->setGroupName(name);
  group->setGroupDesc(name);
  return Group(std::move(group));
}

auto LoneBackend::call(const Called& called, Describe describe, c10::function_ref<Replay()>) -> WorkPtr {
  comm::Operation call;
  call.type = called.type;
  describe(call);
  fill_outputs(call, rank_, size_);
  std::vector<at::Tensor> outputs(call.outputs.begin(), call.outputs.end());
  if (!comm::is_point_to_point(call.type))
    return c10::make_intrusive<DoneWork>(rank_, call.type, std::move(outputs), -1, ++calls_);
  // A receive from any source reports the lowest other rank, or this rank itself if it is alone.
  const int source = call.type == OpType::RECVANYSOURCE ? (rank_ == 0 && size_ > 1 ? 1 : 0)
                     : call.type == OpType::RECV        ? call.peer
                                                        : -1;
  return c10::make_intrusive<DoneWork>(rank_, call.type, std::move(outputs), source, 0);
}

auto LoneBackend::endCoalescing() -> WorkPtr {
  is_coalescing_ = false;
  return c10::make_intrusive<DoneWork>(rank_, OpType::COALESCED, std::vector<at::Tensor>(), -1, 0);
}

auto LoneBackend::companion(const std::string& name) -> BackendPtr {
  auto& own = companions_[name];
  if (own == nullptr) own = c10::make_intrusive<LoneBackend>(rank_, size_, name);
  return own;
}

auto LoneBackend::split(const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
                        const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  const auto found = std::ranges::find(ranks, rank_);
  if (found == ranks.end()) return {};
  return named_by(options, static_cast<int>(found - ranks.begin()), static_cast<int>(ranks.size()));
}

auto LoneBackend::merge(const c10::intrusive_ptr<c10d::Store>&, const c10::intrusive_ptr<Options>& options,
                        const int& rank, const int& size) -> BackendPtr {
  return named_by(options, rank, size);
}

auto LoneBackend::shrink(const std::vector<std::int64_t>& ranks_to_exclude, int,
                         const c10::intrusive_ptr<Options>& options) -> BackendPtr {
  std::vector<int> stay;
  for (int rank = 0; rank < size_; ++rank) {
    if (std::ranges::find(ranks_to_exclude, rank) == ranks_to_exclude.end()) stay.push_back(rank);
  }
  auto left = split({}, stay, options);
  TORCH_CHECK_VALUE(left != nullptr, "shrink: rank ", rank_,
                    " is one of the ranks to exclude; only the ranks that stay may call shrink()");
  return left;
}

void LoneBackend::registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&&) {
  TORCH_CHECK(false, "a lone rank's group has no completion hooks: its calls are complete when they return");
}

}  // namespace rehearse::fakes
