// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace rehearse::parallel {

using Numbers = std::vector<std::int64_t>;

// A device whose tensors the group's calls take. A group of GPUs may have a CPU back end in name only.
at::Device device_of(const c10d::ProcessGroup& group);

// Small collectives with which the ranks of a group agree on something. All calls but start_sum() block.
class NumberExchange {
 public:
  // `device`: a device that the group supports.
  NumberExchange(c10::intrusive_ptr<c10d::ProcessGroup> group, at::Device device);

  Numbers all_reduce(const Numbers& numbers, c10d::ReduceOp::RedOpType op) const;
  std::int64_t sum(std::int64_t number) const { return all_reduce({number}, c10d::ReduceOp::SUM)[0]; }
  std::int64_t max(std::int64_t number) const { return all_reduce({number}, c10d::ReduceOp::MAX)[0]; }

  // The numbers of `root`; other ranks may have fewer or more.
  Numbers broadcast(const Numbers& numbers, int root) const;

  // The work's result is a tensor with the sum as its only element.
  c10::intrusive_ptr<c10d::Work> start_sum(std::int64_t number) const;

 private:
  std::vector<at::Tensor> tensors_of(const Numbers& numbers) const;
  Numbers broadcast_equal(const Numbers& numbers, int root) const;

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  at::Device device_;
};

}  // namespace rehearse::parallel
