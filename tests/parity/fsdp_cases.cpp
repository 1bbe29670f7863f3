// SPDX-License-Identifier: BSD-3-Clause
// FullyShardedDataParallel on a simulated group and on gloo's, in eager mode and compiled.
#include <string>
#include <utility>

#include <rehearse/compile/compile.h>
#include <rehearse/parallel/fsdp.h>

#include "core/parallel/ddp_fixture.h"
#include "parity_case.h"

namespace rehearse::parity {
namespace {

using rehearse_test::batch_of;
using Fsdp = FullyShardedDataParallel<rehearse_test::Mlp>;

constexpr int kFsdpSteps = 3;

// Returns the norm that the gradients had before clipping.
template <class Call>
at::Tensor sharded_step(Fsdp& fsdp, Call&& call, int rank, int step) {
  fsdp.zero_grad();
  {
    const auto guard = fsdp.no_sync();
    call(batch_of(rank, 2 * step)).square().mean().backward();
  }
  call(batch_of(rank, 2 * step + 1)).square().mean().backward();
  return fsdp.clip_grad_norm_(0.5);
}

// The norm, the gradients and the shards of each step, and finally the whole model. Ranks begin with different
// parameters.
Tensors train_sharded(const ProcessGroup& group, FullyShardedOptions options, bool compiles) {
  rehearse_test::Mlp net;
  rehearse_test::fill(*net, group->getRank());
  Fsdp fsdp(net, group, std::move(options));
  auto compiled = compile(fsdp, {.fullgraph = true});
  const auto call = [&](const at::Tensor& x) { return compiles ? compiled(x) : fsdp(x); };
  Tensors values;
  for (int step = 0; step < kFsdpSteps; ++step) {
    values.push_back(sharded_step(fsdp, call, group->getRank(), step));
    for (const auto& gradient : rehearse_test::gradient_copies(fsdp.parameters())) values.push_back(gradient);
    rehearse_test::descend(fsdp.parameters(), 0.25);
    for (const auto& shard : rehearse_test::copies(fsdp.parameters())) values.push_back(shard);
  }
  for (const auto& [name, tensor] : fsdp.full_state_dict()) values.push_back(tensor);
  return values;
}

Case fsdp_case(std::string name, FullyShardedOptions options, bool compiles = false) {
  return {std::move(name),
          [options, compiles](const ProcessGroup& group) { return train_sharded(group, options, compiles); },
          Expected::rounding};
}

}  // namespace

std::vector<Case> fsdp_cases() {
  const auto each = UnitPolicy::named({"first", "second", "third"});
  return {fsdp_case("a unit for each layer", {.units = each}), fsdp_case("the root alone", {}),
          fsdp_case("units that stay whole", {.units = each, .reshard_after_forward = false}),
          fsdp_case("no prefetch in forward", {.units = each, .forward_prefetch = false}),
          fsdp_case("compiled", {.units = each}, /*compiles=*/true)};
}

}  // namespace rehearse::parity
