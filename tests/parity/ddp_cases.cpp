// SPDX-License-Identifier: BSD-3-Clause
// DistributedDataParallel on a simulated group and on gloo's.
#include <rehearse/parallel/comm_hooks.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/parallel/power_sgd.h>

#include "core/parallel/ddp_fixture.h"
#include "parity_case.h"

namespace rehearse::parity {
namespace {

using rehearse_test::batch_of;
using rehearse_test::Mlp;
using MlpDdp = DistributedDataParallel<Mlp>;

void one_step(MlpDdp& ddp, int rank, int step) {
  ddp.zero_grad();
  ddp.forward(batch_of(rank, step)).square().mean().backward();
  rehearse_test::descend(ddp.parameters(), 0.01);
}

void accumulate(MlpDdp& ddp, int rank, int step) {
  ddp.zero_grad();
  {
    const auto guard = ddp.no_sync();
    ddp.forward(batch_of(rank, 2 * step)).square().mean().backward();
  }
  ddp.forward(batch_of(rank, 2 * step + 1)).square().mean().backward();
  rehearse_test::descend(ddp.parameters(), 0.01);
}

void four_steps(MlpDdp& ddp, int rank) {
  for (int step = 0; step < 4; ++step) one_step(ddp, rank, step);
}

// Parameters and gradients after training. All numbers stay below 1.
template <class Training>
Tensors train(const ProcessGroup& group, const DistributedDataParallelOptions& options, const Training& training) {
  Mlp model(6, 16, 3);
  rehearse_test::fill(*model);
  MlpDdp ddp(model, group, options);
  training(ddp, group);
  Tensors values = rehearse_test::copies(ddp.parameters());
  for (auto& gradient : rehearse_test::gradient_copies(ddp.parameters())) values.push_back(gradient);
  return values;
}

// Ranks 0, 1, 2, 3, ... have 2, 3, 4, 2, ... inputs.
Tensors join(const ProcessGroup& group, const parallel::JoinOptions& options) {
  return train(group, {}, [&](MlpDdp& ddp, const ProcessGroup&) {
    const int rank = group->getRank();
    ddp.join(
        [&] {
          for (int step = 0; step < 2 + rank % 3; ++step) one_step(ddp, rank, step);
        },
        options);
    ddp.zero_grad();  // ranks that joined early have other gradients
    one_step(ddp, rank, 9);
  });
}

// Converts the results to bfloat16, the dtype of the sums.
Tensors compressed(const ProcessGroup& group) {
  auto values = train(group, {}, [](MlpDdp& ddp, const ProcessGroup& group) {
    ddp.register_comm_hook(parallel::bf16_compress_hook(group));
    four_steps(ddp, group->getRank());
  });
  for (auto& value : values) value = value.to(at::kBFloat16);
  return values;
}

// Converts the results to float, the dtype of computation and sums.
Tensors mixed_precision(const ProcessGroup& group) {
  DistributedDataParallelOptions options;
  options.mixed_precision = MixedPrecision{.param_dtype = at::kFloat};
  auto values =
      train(group, options, [](MlpDdp& ddp, const ProcessGroup& group) { four_steps(ddp, group->getRank()); });
  for (auto& value : values) value = value.to(at::kFloat);
  return values;
}

Tensors power_sgd(const ProcessGroup& group) {
  auto values = train(group, {.bucket_cap_mb = 0.001}, [](MlpDdp& ddp, const ProcessGroup& group) {
    parallel::PowerSgdOptions options;
    options.start_power_sgd_iter = 2;
    options.min_compression_rate = 1;
    ddp.register_comm_hook(parallel::power_sgd_hook(std::make_shared<parallel::PowerSgd>(group, options)));
    four_steps(ddp, group->getRank());
  });
  for (auto& value : values) value = value.to(at::kFloat);  // PowerSGD carries rounding errors from step to step
  return values;
}

}  // namespace

std::vector<Case> ddp_cases() {
  const auto with = [](DistributedDataParallelOptions options) {
    return [=](const ProcessGroup& group) {
      return train(group, options, [](MlpDdp& ddp, const ProcessGroup& group) { four_steps(ddp, group->getRank()); });
    };
  };
  const auto accumulating = [](const ProcessGroup& group) {
    return train(group, {}, [](MlpDdp& ddp, const ProcessGroup& group) {
      for (int step = 0; step < 3; ++step) accumulate(ddp, group->getRank(), step);
    });
  };
  DistributedDataParallelOptions small, views, unused, fixed, listed;
  small.bucket_cap_mb = 0.001;
  views.gradient_as_bucket_view = true;
  unused.find_unused_parameters = true;
  fixed.static_graph = true;
  listed.bucket_cap_mb_list = {0.0002, 0.001};
  std::vector<Case> cases{
      {"defaults", with({}), Expected::rounding},
      {"small buckets", with(small), Expected::rounding},
      {"gradients as views", with(views), Expected::rounding},
      {"find unused parameters", with(unused), Expected::rounding},
      {"static graph", with(fixed), Expected::rounding},
      {"no_sync", accumulating, Expected::rounding},
      {"join", [](const ProcessGroup& group) { return join(group, {}); }, Expected::rounding},
      {"join, divided by ranks with inputs",
       [](const ProcessGroup& group) { return join(group, {.divide_by_initial_world_size = false}); },
       Expected::rounding},
      {"list of bucket limits", with(listed), Expected::rounding},
      {"mixed precision", mixed_precision, Expected::rounding},
      {"bfloat16 hook", compressed, Expected::rounding},
      {"PowerSGD hook", power_sgd, Expected::rounding},
  };
  for (auto& each : ddp_exact_cases()) cases.push_back(std::move(each));
  return cases;
}

}  // namespace rehearse::parity
