// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse_internal/comm/operation.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "comm/call/argument_checks.h"

namespace rehearse::comm {

// Describes a c10d call as an Operation, for every kind of back end: checks the arguments on this rank and fills in the
// operation. The caller sets the type, the timeout and the label. Throws c10::Error for arguments that make no sense
// (see ArgumentChecks for the texts).
class CallDescriber {
 public:
  using Tensors = ArgumentChecks::Tensors;
  using TensorLists = std::vector<Tensors>;

  // `rank`: the caller's rank in the group. `size`: the group's size.
  CallDescriber(int rank, int size) : rank_(rank), size_(size) {}

  void broadcast(const Tensors& tensors, const c10d::BroadcastOptions& options, Operation& call) const;
  // The caller sets the type _ALLREDUCE_SPARSE if allreduces_sparse(tensors).
  void allreduce(const Tensors& tensors, const c10d::AllreduceOptions& options, Operation& call) const;
  void allreduce_coalesced(const Tensors& tensors, const c10d::AllreduceCoalescedOptions& options,
                           Operation& call) const;
  void reduce(const Tensors& tensors, const c10d::ReduceOptions& options, Operation& call) const;
  void allgather(const TensorLists& outputs, const Tensors& inputs, Operation& call) const;
  void allgather_base(const at::Tensor& output, const at::Tensor& input, Operation& call) const;
  void allgather_coalesced(const TensorLists& outputs, const Tensors& inputs, Operation& call) const;
  void allgather_into_tensor_coalesced(const Tensors& outputs, const Tensors& inputs, Operation& call) const;
  void gather(const TensorLists& outputs, const Tensors& inputs, const c10d::GatherOptions& options,
              Operation& call) const;
  void scatter(const Tensors& outputs, const TensorLists& inputs, const c10d::ScatterOptions& options,
               Operation& call) const;
  void reduce_scatter(const Tensors& outputs, const TensorLists& inputs, const c10d::ReduceScatterOptions& options,
                      Operation& call) const;
  void reduce_scatter_base(const at::Tensor& output, const at::Tensor& input, const c10d::ReduceScatterOptions& options,
                           Operation& call) const;
  void reduce_scatter_tensor_coalesced(const Tensors& outputs, const Tensors& inputs,
                                       const c10d::ReduceScatterOptions& options, Operation& call) const;
  // Splits dimension 0; without splits the parts are equal.
  void alltoall_base(const at::Tensor& output, const at::Tensor& input, const std::vector<std::int64_t>& output_splits,
                     const std::vector<std::int64_t>& input_splits, Operation& call) const;
  void alltoall(const Tensors& outputs, const Tensors& inputs, Operation& call) const;

  // For SEND, RECV and RECVANYSOURCE (`peer` is -1). `coalesced`: the peer may be the rank itself.
  void point_to_point(const Tensors& tensors, int peer, int tag, bool coalesced, Operation& call) const;

 private:
  const int rank_;
  const int size_;
};

inline bool allreduces_sparse(const CallDescriber::Tensors& tensors) {
  return !tensors.empty() && tensors.front().is_sparse();
}

}  // namespace rehearse::comm
