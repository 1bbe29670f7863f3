// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse/comm/operation.h>

namespace rehearse::comm {

class GroupState;
class RankWork;

// The back end behind a rank's c10d::ProcessGroup (type CUSTOM, name "rehearse"), in the simulation and on devices
// alike: it checks the arguments, describes the call as an Operation and hands it to the group, which matches it with
// the other ranks' calls. Made by Communicators.
//
// Tensor lists hold one tensor a rank. NOT there (the base class's error): coalesced operations,
// splitting and shrinking.
// Blocking: only monitoredBarrier(). Fibers: use it in the rank that it belongs to (checked).
// Errors: c10::Error for arguments that make no sense, with the texts of c10d's own back ends; MismatchError when
// the call is not the one that other ranks made at this place; CommError once the world has ended.
class RankBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // `rank` within the group.
  RankBackend(c10::intrusive_ptr<GroupState> group, int rank, std::chrono::milliseconds timeout);
  ~RankBackend() override;

  const std::string getBackendName() const override { return "rehearse"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  // A sparse COO tensor too, on the CPU: the sum of all ranks' tensors, coalesced, takes the place of its values.
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;  // the same, as Gloo's
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  // Blocks until every rank of the group has called it. Rank 0 gives up after the timeout and names the first rank
  // that is missing, or all of them (`wait_all_ranks`): TimeoutError. The others then fail with CommError.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // How many collectives this rank has called on the group. There is nothing to agree on: all start from 0.
  std::uint64_t getSequenceNumberForGroup() override;
  void setSequenceNumberForGroup() override {}

  GroupState& group() const noexcept { return *group_; }

 private:
  c10::intrusive_ptr<RankWork> make(c10d::OpType type, std::chrono::milliseconds timeout) const;
  WorkPtr submit(c10::intrusive_ptr<RankWork> work) const;

  const c10::intrusive_ptr<GroupState> group_;
  std::chrono::milliseconds timeout_;
};

}  // namespace rehearse::comm
