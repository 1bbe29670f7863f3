// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/model/parameter_claims.h"

#include <mutex>
#include <unordered_map>

#include <c10/util/Exception.h>

#include <rehearse_internal/exec/world_number.h>

namespace rehearse::parallel {
namespace {

struct Claim {
  std::uint64_t world = 0;  // a claim from another world, whose rank could not unwind, is void
  int rank = -1;
  int times = 0;
};

// The claims of all worlds, which may run on several threads. Looked up; never iterated.
std::mutex g_mutex;
std::unordered_map<const c10::TensorImpl*, Claim> g_claims;

}  // namespace

ParameterClaims::ParameterClaims(int rank, const ReducedParameters& parameters, const char* who)
    : world_(exec::world_number()) {
  if (world_ == 0) return;
  const std::lock_guard lock(g_mutex);
  for (std::size_t i = 0; i < parameters.tensors.size(); ++i) {
    const auto found = g_claims.find(parameters.tensors[i].unsafeGetTensorImpl());
    if (found == g_claims.end() || found->second.world != world_) continue;
    TORCH_CHECK_VALUE(found->second.rank == rank, who, ": parameter \"", parameters.names[i], "\" of rank ", rank,
                      " is that of rank ", found->second.rank,
                      ", too: one model for several ranks, as processes cannot have it. Make it inside of the body "
                      "that ranks run.");
  }
  for (const auto& tensor : parameters.tensors) {
    auto& claim = g_claims[tensor.unsafeGetTensorImpl()];
    claim = {world_, rank, claim.world == world_ ? claim.times + 1 : 1};
    claimed_.push_back(tensor.unsafeGetTensorImpl());
  }
}

ParameterClaims::~ParameterClaims() {
  const std::lock_guard lock(g_mutex);
  for (const auto* const tensor : claimed_) {
    const auto found = g_claims.find(tensor);
    if (found == g_claims.end() || found->second.world != world_) continue;
    if (--found->second.times == 0) g_claims.erase(found);
  }
}

}  // namespace rehearse::parallel
