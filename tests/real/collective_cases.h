// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

// Calls of c10d with known inputs, for a fake device and for real ones: what they give is compared with what the same
// calls give in the host's memory.
namespace rehearse::real {

using Tensors = std::vector<at::Tensor>;

// Where a case's tensors lie: a copy of `host` there.
using Place = std::function<at::Tensor(const at::Tensor& host)>;

struct CollectiveCase {
  std::string name;
  // One rank's calls; gives what it holds in the end.
  std::function<Tensors(int rank, int ranks, const c10::intrusive_ptr<c10d::ProcessGroup>& group, const Place& place)>
      calls;
};

std::vector<CollectiveCase> reductions();  // every dtype and reduction that NCCL has
std::vector<CollectiveCase> copies();
std::vector<CollectiveCase> exchanges();  // all-to-all, sends and receives, several at once

// [rank][case]: whether each holds the very values that are expected.
void expect_alike(const std::vector<CollectiveCase>& cases, const std::vector<std::vector<Tensors>>& expected,
                  const std::vector<std::vector<Tensors>>& held);

}  // namespace rehearse::real
