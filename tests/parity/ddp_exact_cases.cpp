// SPDX-License-Identifier: BSD-3-Clause
// DistributedDataParallel on models whose gradients are sums of numbers with few bits. Except in one case, the sums are
// exact in any order. The division by the number of ranks is exact if that number is a power of two.
#include <array>

#include <rehearse/parallel/comm_hooks.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "core/parallel/ddp_fixture.h"
#include "parity_case.h"

namespace rehearse::parity {
namespace {

using rehearse_test::batch_of;
using BuiltIn = c10d::BuiltinCommHookType;
using Options = DistributedDataParallelOptions;
template <class Net>
using Ddp = DistributedDataParallel<std::shared_ptr<Net>>;
template <class Net>
using Prepare = std::function<void(Ddp<Net>& ddp, const ProcessGroup& group)>;

constexpr int kSteps = 3;
constexpr double kSmall = 0.0001;  // in MiB: every bucket closes after its first or second parameter

torch::nn::Linear layer(at::ScalarType dtype = at::kDouble) {
  torch::nn::Linear made(6, 3);
  made->to(dtype);
  return made;
}

// Parameters of four dtypes, which do not share buckets.
struct Dtypes : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return wide(x) + single(x.to(at::kFloat)) + half(x.to(at::kHalf)) + brain(x.to(at::kBFloat16));
  }
  torch::nn::Linear wide = register_module("wide", layer());
  torch::nn::Linear single = register_module("single", layer(at::kFloat));
  torch::nn::Linear half = register_module("half", layer(at::kHalf));
  torch::nn::Linear brain = register_module("brain", layer(at::kBFloat16));
};

// Uses the branches whose bits are set in `used`. One layer is never used.
struct Branches : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x, unsigned used) {
    at::Tensor sum;
    for (unsigned i = 0; i < branches.size(); ++i) {
      if ((used >> i & 1) != 0) sum = sum.defined() ? sum + branches[i](x) : branches[i](x);
    }
    return sum;
  }
  std::array<torch::nn::Linear, 3> branches{register_module("a", layer()), register_module("b", layer()),
                                            register_module("c", layer())};
  torch::nn::Linear never = register_module("never", layer());
};

struct Reused : torch::nn::Module {
  Reused() { twice->to(at::kDouble); }
  at::Tensor forward(const at::Tensor& x) { return twice(twice(x).relu()); }
  torch::nn::Linear twice = register_module("twice", torch::nn::Linear(6, 6));
  torch::nn::Linear never = register_module("never", layer());
};

// The branches that a rank uses in a step, at least one. They differ between ranks and between steps.
unsigned used_by(int rank, int step) { return 1 + static_cast<unsigned>(3 * rank + 5 * step) % 7; }

// Parameters and gradients. A missing gradient becomes an empty tensor.
void note(const torch::nn::Module& net, Tensors& values) {
  for (const auto& parameter : net.parameters()) {
    values.push_back(parameter.detach().clone());
    values.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::empty({0}, parameter.scalar_type()));
  }
}

// The rank's values after each step. Ranks begin with different parameters.
template <class Net, class Step>
Tensors train(const ProcessGroup& group, const Options& options, const Prepare<Net>& prepare, const Step& step_of) {
  auto net = std::make_shared<Net>();
  rehearse_test::fill(*net, group->getRank());
  Ddp<Net> ddp(net, group, options);
  if (prepare) prepare(ddp, group);
  Tensors values;
  for (int step = 0; step < kSteps; ++step) {
    ddp.zero_grad();
    step_of(ddp, group->getRank(), step);
    rehearse_test::descend(ddp.parameters(), 0.25);
    note(*net, values);
  }
  return values;
}

constexpr auto kPlain = [](auto& ddp, int rank, int step) { ddp.forward(batch_of(rank, step)).sum().backward(); };
constexpr auto kBranches = [](auto& ddp, int rank, int step) {
  ddp.forward(batch_of(rank, step), used_by(rank, step)).sum().backward();
};
constexpr auto kSameBranches = [](auto& ddp, int rank, int step) {
  ddp.forward(batch_of(rank, step), used_by(0, step)).sum().backward();
};

// Ranks 0, 1, 2, 3, ... accumulate 1, 2, 3, 1, ... gradients before they reduce. With `first_reduces`, the first step
// accumulates none, as a static graph requires.
template <class Step>
auto accumulating(Step step_of, bool first_reduces = false) {
  return [=](auto& ddp, int rank, int step) {
    if (step > 0 || !first_reduces) {
      const auto guard = ddp.no_sync();
      for (int micro = 0; micro <= rank % 3; ++micro) step_of(ddp, rank, 10 * step + micro);
    }
    step_of(ddp, rank, 10 * step + 5);
  };
}

// Ranks 0, 1, 2, 3, ... have 1, 2, 3, 1, ... inputs.
Tensors join_branches(const ProcessGroup& group, const parallel::JoinOptions& options) {
  auto net = std::make_shared<Branches>();
  rehearse_test::fill(*net, group->getRank());
  Ddp<Branches> ddp(net, group, {.bucket_cap_mb = kSmall, .find_unused_parameters = true});
  Tensors values;
  ddp.join(
      [&] {
        for (int step = 0; step < 1 + group->getRank() % 3; ++step) {
          ddp.zero_grad();
          kBranches(ddp, group->getRank(), step);
          rehearse_test::descend(ddp.parameters(), 0.25);
          note(*net, values);
        }
      },
      options);
  for (const auto& parameter : net->parameters()) values.push_back(parameter.detach().clone());
  return values;
}

template <class Net, class Step>
void add(std::vector<Case>& cases, const char* name, const Options& options, Step step_of,
         Expected expected = Expected::exact_sums) {
  cases.push_back({name, [=](const ProcessGroup& group) { return train<Net>(group, options, {}, step_of); }, expected});
}

// Adds a case for each hook. A case converts its results to `sums`, the dtype in which the hook adds.
void add_hooks(std::vector<Case>& cases) {
  const Options options{.bucket_cap_mb = kSmall, .find_unused_parameters = true};
  const auto add_hook = [&](const char* name, at::ScalarType sums, Prepare<Branches> prepare) {
    const auto body = [=](const ProcessGroup& group) {
      auto values = train<Branches>(group, options, prepare, accumulating(kBranches));
      for (auto& value : values) value = value.to(sums);
      return values;
    };
    cases.push_back({name, body, Expected::exact_sums});
  };
  add_hook("hook: all-reduce", at::kDouble,
           [](auto& ddp, const ProcessGroup&) { ddp.register_comm_hook(BuiltIn::ALLREDUCE); });
  add_hook("hook: fp16", at::kHalf,
           [](auto& ddp, const ProcessGroup&) { ddp.register_comm_hook(BuiltIn::FP16_COMPRESS); });
  add_hook("hook: fp16 wrapper", at::kHalf, [](auto& ddp, const ProcessGroup& group) {
    ddp.register_comm_hook(parallel::fp16_compress_wrapper(parallel::allreduce_hook(group)));
  });
}

void add_refusals(std::vector<Case>& cases) {
  cases.push_back({"unused parameters that nobody looks for",
                   [](const ProcessGroup& group) { return train<Branches>(group, {}, {}, kBranches); }});
  cases.push_back({"join that ends with the first rank", [](const ProcessGroup& group) {
                     return join_branches(group, {.throw_on_early_termination = true});
                   }});
}

}  // namespace

std::vector<Case> ddp_exact_cases() {
  const Options views{.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true};
  const Options unused{.bucket_cap_mb = kSmall, .find_unused_parameters = true};
  const Options unused_views{.bucket_cap_mb = kSmall, .gradient_as_bucket_view = true, .find_unused_parameters = true};
  const Options skipped{.bucket_cap_mb = kSmall, .find_unused_parameters = true, .skip_all_reduce_unused_params = true};
  const Options fixed{.bucket_cap_mb = kSmall, .static_graph = true};
  std::vector<Case> cases;
  add<Dtypes>(cases, "four dtypes", {}, kPlain);
  add<Dtypes>(cases, "four dtypes, gradients as views", views, kPlain);
  // Sums of several batches have more bits than a bfloat16.
  add<Dtypes>(cases, "four dtypes, no_sync", unused, accumulating(kPlain), Expected::rounding);
  add<Branches>(cases, "other unused parameters on each rank", unused, kBranches);
  add<Branches>(cases, "other unused parameters, gradients as views", unused_views, kBranches);
  add<Branches>(cases, "other unused parameters, no_sync", unused, accumulating(kBranches));
  add<Branches>(cases, "unused buckets that are not reduced", skipped, kSameBranches);
  add<Reused>(cases, "static graph", fixed, kPlain);
  add<Reused>(cases, "static graph, no_sync", fixed, accumulating(kPlain, /*first_reduces=*/true));
  add_hooks(cases);
  cases.push_back({"join, other unused parameters", [](const ProcessGroup& group) { return join_branches(group, {}); },
                   Expected::exact_sums});
  add_refusals(cases);
  return cases;
}

}  // namespace rehearse::parity
