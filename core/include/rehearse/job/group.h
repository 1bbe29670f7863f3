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

// A process group with calls for one tensor each, for tests and small programs. For everything else use the
// c10d::ProcessGroup, to which a Group converts. A value type: copies share the group. A default-constructed Group, and
// the Group of a rank that is not a member, is empty; calling it throws std::logic_error.
//
// A function captured by rehearse::compile() must use only groups that a guard covers: an argument, a watched group,
// world_group(), or a group stored by value in the function object itself. The reason is that a group becomes a
// constant of the graph. The capture refuses any other group: it throws or ends there.
//
// The calls do not wait for other ranks; the returned Work's wait() does. In a simulation, a call that differs from the
// calls of other ranks may wait until the vote on the mismatch is over. Errors: as the c10d call.
class Group {
 public:
  Group() = default;
  explicit Group(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {}

  // True if the calling rank is a member.
  explicit operator bool() const { return static_cast<bool>(get()); }
  const c10::intrusive_ptr<c10d::ProcessGroup>& get() const;
  c10d::ProcessGroup* operator->() const { return &checked(); }
  operator const c10::intrusive_ptr<c10d::ProcessGroup>&() const { return get(); }

  // The calling rank's number in the group, and the number of the group's ranks.
  int rank() const { return checked().getRank(); }
  int size() const { return checked().getSize(); }

  // The members as ranks of the world, in the order of the group. Throws std::logic_error if the back end does not know
  // them, as in a group that the program made from its own back end.
  std::vector<int> ranks() const;
  // The name for c10d::resolve_process_group(), for example "world". If an earlier group has the same name, a number
  // follows ("pair#2"), which reports leave out. A group that shrink() makes gets no number, and
  // c10d::resolve_process_group() does not find it.
  const std::string& name() const { return checked().getGroupName(); }

  Work allreduce(at::Tensor tensor, c10d::ReduceOp op = c10d::ReduceOp::SUM) const;  // in place
  Work broadcast(at::Tensor tensor, int root = 0) const;                             // in place
  Work reduce(at::Tensor tensor, int root = 0, c10d::ReduceOp op = c10d::ReduceOp::SUM) const;
  Work allgather(std::vector<at::Tensor> outputs, at::Tensor input) const;
  Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> inputs, c10d::ReduceOp op = c10d::ReduceOp::SUM) const;
  Work alltoall(at::Tensor output, at::Tensor input, std::vector<std::int64_t> output_splits = {},
                std::vector<std::int64_t> input_splits = {}) const;  // along dimension 0; without splits: equal parts
  Work send(at::Tensor tensor, int to, int tag = 0) const;
  Work recv(at::Tensor tensor, int from, int tag = 0) const;
  Work barrier() const;

  // Call it on a rank that is slow or waits for a slow one. Adds `duration` to the time limits of this rank's next
  // operation on this group, and of operations that the rank starts before that one has ended. As torch.distributed's
  // _add_ephemeral_timeout_for_all_pgs() for NCCL; back ends that are not Rehearse's own ignore it.
  void extend_timeout_once(std::chrono::milliseconds duration) const;

  // Makes a group of the remaining ranks of this group; only these call it. Calls c10d::Backend::shrink(), for which
  // c10d::ProcessGroup has no function. `abort`: first makes this rank's pending calls on this group fail; if ranks are
  // processes, throws c10::ValueError instead. If this group has a store, the new group uses the store with the new
  // group's name as prefix. Functional collectives, which look groups up by their names, do not find the new group.
  Group shrink(const std::vector<int>& ranks_to_exclude, bool abort = false) const;

 private:
  c10d::ProcessGroup& checked() const;

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

// The group of all ranks, as RankContext::group(), for code without a context. A captured function guards it: in an
// incarnation with another world, a call compiles anew. The reference is valid while the rank's body runs. Throws
// std::logic_error outside of a rank.
const Group& world_group();

}  // namespace rehearse
