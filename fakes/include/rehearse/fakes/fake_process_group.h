// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse/job/group.h>

namespace rehearse::fakes {

// One rank alone in a world of `size`, as torch's back end "fake": for what needs a group but not its other ranks, such
// as capturing rank 1,000 of 1,024. Each call is complete when it returns.
//
// Tensors are what c10d::FakeProcessGroup leaves in them, as if all ranks gave what this one gives: allgather,
// _allgather_base and allgather_into_tensor_coalesced copy the input to each rank's place. All other calls leave their
// tensors as they are: a sum is this rank's own tensor, and outputs of gather, scatter, reduce_scatter, alltoall,
// allgather_coalesced and recv are not written. Beyond it, a Work is complete and its future holds the output tensors
// (DDP's reducer reads them), calls are counted, and groups can be made of groups.
//
// Nothing blocks, no fiber is needed. Errors: c10::ValueError for a rank that is not in the world, and what ATen throws
// where an output does not fit its input; other arguments are not checked.
class FakeProcessGroup final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  FakeProcessGroup(int rank, int size);

  // A c10d::ProcessGroup over such a back end, not in c10d's registry of groups. Its store is empty.
  static Group group(int rank, int size, const std::string& name = "world");

  const std::string getBackendName() const override { return "fake"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }

  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  bool supportsShrinking() const override { return true; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions&, bool) override { ++calls_; }

  // Calls are complete one by one; the Work in the end stands for all of them.
  void startCoalescing() override {}
  WorkPtr endCoalescing() override;

  std::uint64_t getSequenceNumberForGroup() override { return calls_; }  // collectives called
  void setSequenceNumberForGroup() override {}

  // Null where this rank is not among `ranks`.
  BackendPtr split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                   const c10::intrusive_ptr<Options>& options) override;
  BackendPtr merge(const c10::intrusive_ptr<c10d::Store>& store, const c10::intrusive_ptr<Options>& options,
                   const int& rank, const int& size) override;
  BackendPtr shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                    const c10::intrusive_ptr<Options>& options) override;

  void abort() override {}
  void shutdown() override {}
  c10d::ErrorType getError() override { return c10d::ErrorType::SUCCESS; }
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override;
  void waitForPendingWorks() override {}
  void enableCollectivesTiming() override {}

 private:
  WorkPtr done(c10d::OpType type, Tensors outputs);
  WorkPtr sent_or_received(c10d::OpType type, Tensors outputs, int source);

  std::chrono::milliseconds timeout_ = kBackendDefaultTimeout;
  std::uint64_t calls_ = 0;
};

}  // namespace rehearse::fakes
