// SPDX-License-Identifier: BSD-3-Clause
// The PowerSGD trainings for which the bits of PyTorch's own hook over gloo were recorded; see gloo_parity_test.cpp.
#include <rehearse/parallel/distributed_data_parallel.h>

#include "core/parallel/ddp_fixture.h"
#include "core/parallel/recorded/recorded_models.h"
#include "core/parallel/recorded/recorded_power_sgd.h"
#include "parity_case.h"

namespace rehearse::parity {
namespace {

namespace recorded = rehearse_test::recorded;

// The parameters after the recorded steps, in the order of registration.
Tensors train(const recorded::PowerSgdCase& given, const ProcessGroup& group) {
  const int rank = group->getRank();
  auto net = std::make_shared<recorded::Matrix>();
  rehearse_test::fill(*net, 7 * rank);
  DistributedDataParallel ddp(net, group);
  ddp.register_comm_hook(given.hook(group));
  Tensors values;
  for (int step = 0; step < recorded::kPowerSgdSteps; ++step) {
    ddp.zero_grad();
    ddp(rehearse_test::batch_of(rank, step)).square().sum().backward();
    rehearse_test::descend(ddp.parameters(), recorded::kPowerSgdRate);
    if (step != 1 && step + 1 != recorded::kPowerSgdSteps) continue;
    for (const auto& parameter : net->parameters()) values.push_back(parameter.detach().clone());
  }
  return values;
}

}  // namespace

std::vector<Case> power_sgd_cases() {
  std::vector<Case> cases;
  for (const auto& given : recorded::power_sgd_cases()) {
    cases.push_back(
        {given.recorded_as(), [=](const ProcessGroup& group) { return train(given, group); }, Expected::rounding});
  }
  return cases;
}

}  // namespace rehearse::parity
