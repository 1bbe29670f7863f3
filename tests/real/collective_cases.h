// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

// Calls of c10d with known inputs, for a fake device and for real ones. Tests compare their results with those of the
// same calls in host memory.
namespace rehearse::real {

using Tensors = std::vector<at::Tensor>;

// Copies `host` to the place where a case's tensors are.
using Place = std::function<at::Tensor(const at::Tensor& host)>;

struct CollectiveCase {
  std::string name;
  // Makes one rank's calls, and returns the values that the rank holds in the end.
  std::function<Tensors(int rank, int ranks, const c10::intrusive_ptr<c10d::ProcessGroup>& group, const Place& place)>
      calls;
};

std::vector<CollectiveCase> reductions();  // all reductions of NCCL; all-reduces for several dtypes
std::vector<CollectiveCase> copies();
std::vector<CollectiveCase> exchanges();  // all-to-all, sends and receives, several at once

// Expects that each held value equals the expected one exactly. Both are indexed [rank][case].
void expect_alike(const std::vector<CollectiveCase>& cases, const std::vector<std::vector<Tensors>>& expected,
                  const std::vector<std::vector<Tensors>>& held);

}  // namespace rehearse::real
