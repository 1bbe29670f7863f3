// SPDX-License-Identifier: BSD-3-Clause
// The same DistributedDataParallel on either kind of group.
#include <rehearse/parallel/distributed_data_parallel.h>

#include "core/parallel/ddp_fixture.h"
#include "parity_case.h"

namespace rehearse::parity {
namespace {

using rehearse_test::Mlp;

// Parameters and gradients after four steps; all numbers stay below 1.
Tensors train(const ProcessGroup& group, const DistributedDataParallelOptions& options) {
  Mlp model(6, 16, 3);
  rehearse_test::fill(*model);
  DistributedDataParallel ddp(model, group, options);
  for (int step = 0; step < 4; ++step) {
    ddp.zero_grad();
    const auto loss = ddp.forward(rehearse_test::batch_of(group->getRank(), step)).square().mean();
    loss.backward();
    rehearse_test::descend(ddp.parameters(), 0.01);
  }
  Tensors values = rehearse_test::copies(ddp.parameters());
  for (auto& gradient : rehearse_test::gradient_copies(ddp.parameters())) values.push_back(gradient);
  return values;
}

}  // namespace

std::vector<Case> ddp_cases() {
  const auto with = [](DistributedDataParallelOptions options) {
    return [=](const ProcessGroup& group) { return train(group, options); };
  };
  DistributedDataParallelOptions small, views, unused;
  small.bucket_cap_mb = 0.001;
  views.gradient_as_bucket_view = true;
  unused.find_unused_parameters = true;
  return {
      {"defaults", with({}), Expected::rounding},
      {"small buckets", with(small), Expected::rounding},
      {"gradients as views", with(views), Expected::rounding},
      {"find unused parameters", with(unused), Expected::rounding},
  };
}

}  // namespace rehearse::parity
