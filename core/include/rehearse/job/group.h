// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace rehearse {

using Work = c10::intrusive_ptr<c10d::Work>;

// A process group with calls for one tensor each, for tests and small programs. Everything else goes through the
// c10d::ProcessGroup itself, which this converts to. A value type: copies share the group. A default-made Group (and
// that of a rank that is not a member) is empty; calling it throws std::logic_error.
//
// In a captured function (rehearse::compile()) a group is a constant, so something must guard it: it is an argument,
// watched, world_group(), or kept by value in the function object itself. Using another one there is refused, by the
// capture's exception or by its end.
//
// The calls do not wait for other ranks, the returned Work's wait() does (in a simulation a call that differs from the
// other ranks' may: until they have taken a side). Errors as those of the c10d call.
class Group {
 public:
  Group() = default;
  explicit Group(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {}

  // Is the calling rank a member?
  explicit operator bool() const { return static_cast<bool>(get()); }
  const c10::intrusive_ptr<c10d::ProcessGroup>& get() const;
  c10d::ProcessGroup* operator->() const { return &checked(); }
  operator const c10::intrusive_ptr<c10d::ProcessGroup>&() const { return get(); }

  // Ranks within the group.
  int rank() const { return checked().getRank(); }
  int size() const { return checked().getSize(); }

  // The members as ranks of the world, by rank within the group. Throws std::logic_error if the back end does not know
  // them: a group that the program has made of a back end of its own.
  std::vector<int> ranks() const;
  // By which c10d::resolve_process_group() finds the group, and by which reports tell it from others: "world".
  const std::string& name() const { return checked().getGroupName(); }

  Work allreduce(at::Tensor tensor, c10d::ReduceOp op = c10d::ReduceOp::SUM) const;  // in place
  Work broadcast(at::Tensor tensor, int root = 0) const;                             // in place
  Work reduce(at::Tensor tensor, int root = 0, c10d::ReduceOp op = c10d::ReduceOp::SUM) const;
  Work allgather(std::vector<at::Tensor> outputs, at::Tensor input) const;
  Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> inputs, c10d::ReduceOp op = c10d::ReduceOp::SUM) const;
  Work alltoall(at::Tensor output, at::Tensor input, std::vector<std::int64_t> output_splits = {},
                std::vector<std::int64_t> input_splits = {}) const;  // along dimension 0; no splits: even
  Work send(at::Tensor tensor, int to, int tag = 0) const;
  Work recv(at::Tensor tensor, int from, int tag = 0) const;
  Work barrier() const;

  // For a rank that knows itself to be slow, or waits for one that is: this rank's next operation on this group, and
  // those that it begins before that one has ended, get `duration` on top of their time limits. What
  // torch.distributed's _add_ephemeral_timeout_for_all_pgs() does for NCCL; back ends without time limits ignore it.
  void extend_timeout_once(std::chrono::milliseconds duration) const;

  // A group of the ranks (of this group) that stay, which alone call it: c10d::Backend::shrink(), for which
  // c10d::ProcessGroup has no call. `abort`: this rank's calls on this group that are under way fail first. The group's
  // store, where it has one, gets the new name as prefix.
  Group shrink(const std::vector<int>& ranks_to_exclude, bool abort = false) const;

 private:
  c10d::ProcessGroup& checked() const;

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

// The group of all ranks: what RankContext::group() is, for code that has no context. In a captured function it is
// guarded: in a life in which the rank has another world, a call compiles anew. The reference is valid while the rank's
// body runs. Throws std::logic_error outside of a rank.
const Group& world_group();

}  // namespace rehearse
