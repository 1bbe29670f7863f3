// SPDX-License-Identifier: BSD-3-Clause
// Repeats every training that PyTorch's fully_shard made on gloo. On every rank, the collectives, their sizes and their
// order must be those of PyTorch, and so must the shapes of shards. Losses, norms, gradients and parameters must agree
// within rounding.
#include <map>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <rehearse/parallel/fsdp.h>

#include "core/parallel/ddp_fixture.h"
#include "core/parallel/fsdp/recorded_runs.h"
#include "core/parallel/fsdp/reference_models.h"

namespace {

using namespace rehearse_test;
using nlohmann::json;
using rehearse::RankContext;
using Fsdp = rehearse::FullyShardedDataParallel<std::shared_ptr<ReferenceModel>>;
using Named = std::map<std::string, at::Tensor>;

constexpr double kRounding = 1e-12;  // relative to the largest value of a tensor

std::shared_ptr<ReferenceModel> model_of(const std::string& name) {
  if (name.starts_with("lm")) return std::make_shared<ReferenceLm>(name == "lm_tied");
  if (name == "mlp_uneven") return std::make_shared<ReferenceMlp>(std::vector<std::int64_t>{5, 7, 3, 1});
  return std::make_shared<ReferenceMlp>(std::vector<std::int64_t>{6, 10, 8, 3});
}

rehearse::FullyShardedOptions options_of(const json& run) {
  rehearse::FullyShardedOptions options{.init_sync = false};
  const auto name = run.at("case").get<std::string>();
  if (name.starts_with("lm")) {
    options.units = rehearse::UnitPolicy::of_type<ReferenceBlockImpl>();
  } else if (name != "mlp_root_only") {
    options.units = rehearse::UnitPolicy::named({"layers.0", "layers.1", "layers.2"});
  }
  if (run.at("options").contains("reshard_after_forward"))
    options.reshard_after_forward = run.at("options").at("reshard_after_forward").get<bool>();
  return options;
}

at::Tensor input_of(const json& run, int rank, int step, int micro) {
  const auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(1000 * step + 100 * micro + rank));
  const auto n = run.at("input")[1].get<std::int64_t>();
  if (run.at("input")[0] == "dense") return at::randn({4, n}, generator, at::kDouble);
  return at::randint(n, {2, 5}, generator, at::kLong);
}

at::Tensor loss_of(const json& run, const at::Tensor& output, const at::Tensor& input) {
  if (run.at("input")[0] == "dense") return output.square().mean();
  const auto words = output.size(-1);
  return torch::nn::functional::cross_entropy(output.narrow(1, 0, 4).reshape({-1, words}),
                                              input.narrow(1, 1, 4).reshape(-1));
}

void set_start(torch::nn::Module& module, const json& run) {
  const at::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) {
    if (!run.at("start").contains(item.key())) continue;  // the second name of a tied parameter
    const auto values = run.at("start").at(item.key()).get<std::vector<double>>();
    item.value().copy_(at::tensor(values, at::kDouble).view(item.value().sizes()));
  }
  const auto frozen = run.at("options").value("frozen", std::vector<std::string>());
  for (const auto& name : frozen) module.named_parameters()[name].requires_grad_(false);
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const json& run, const Fsdp& fsdp) {
  std::vector<at::Tensor> trained;
  for (const auto& each : fsdp.parameters()) {
    if (each.requires_grad()) trained.push_back(each);
  }
  if (run.at("optimizer") == "sgd") return std::make_unique<torch::optim::SGD>(trained, 0.1);
  return std::make_unique<torch::optim::AdamW>(trained, torch::optim::AdamWOptions(1e-2));
}

// The results of one rank in one step.
struct Step {
  std::vector<double> losses;
  double norm = 0;
  Named gradients, parameters;  // shards
};

Step make_step(const json& run, Fsdp& fsdp, torch::optim::Optimizer& optimizer, int rank, int index) {
  Step step;
  const int micros = run.at("options").value("accumulate", 1);
  for (int micro = 0; micro < micros; ++micro) {
    std::optional<rehearse::parallel::NoSyncGuard<rehearse::parallel::FsdpSession>> guard;
    if (micro + 1 < micros) guard.emplace(fsdp.no_sync());
    const auto input = input_of(run, rank, index, micro);
    const auto loss = loss_of(run, fsdp.forward(input), input);
    loss.backward();
    step.losses.push_back(loss.item<double>());
  }
  if (run.at("options").contains("clip"))
    step.norm = fsdp.clip_grad_norm_(run.at("options").at("clip").get<double>()).item<double>();
  for (const auto& [name, shard] : fsdp.named_parameters()) {
    if (shard.grad().defined()) step.gradients[name] = shard.grad().clone();
  }
  optimizer.step();
  fsdp.zero_grad();
  for (const auto& [name, shard] : fsdp.named_parameters()) step.parameters[name] = shard.detach().clone();
  return step;
}

void expect_shapes(const json& recorded, const Fsdp& fsdp) {
  json shapes;
  for (const auto& [name, shard] : fsdp.named_parameters()) shapes[name] = shard.sizes().vec();
  EXPECT_EQ(shapes, recorded);
}

at::Tensor flat(const json& values) { return at::tensor(values.get<std::vector<double>>(), at::kDouble); }

// `slack` has an additional tolerance for each element of some tensors, by the tensor's name.
void expect_values(const Named& ours, const json& recorded, const Named& slack = {}) {
  std::vector<std::string> names, recorded_names;
  for (const auto& [name, tensor] : ours) names.push_back(name);
  for (const auto& [name, values] : recorded.items()) recorded_names.push_back(name);
  ASSERT_EQ(names, recorded_names);
  for (const auto& [name, tensor] : ours) {
    const auto expected = flat(recorded.at(name));
    const auto rounding = kRounding * expected.abs().max();
    const auto allowed = slack.contains(name) ? rounding + slack.at(name) : rounding.expand_as(expected);
    const auto off = (tensor.flatten() - expected).abs();
    EXPECT_TRUE((off <= allowed).all().item<bool>()) << name << " is off by " << off.max().item<double>();
  }
}

// Some gradients are only rounding noise, both in PyTorch's run and in ours. An example is the gradient of a key's
// bias, because attention does not depend on that bias. AdamW divides a gradient by its own size plus 1e-8, so noise
// makes steps of visible size. Adds to `slack` the largest difference that such a step can make.
void add_noise(Named& slack, const Named& ours, const json& recorded) {
  constexpr double kRate = 1e-2, kEpsilon = 1e-8;
  for (const auto& [name, gradient] : ours) {
    const auto theirs = flat(recorded.at(name)).abs();
    const auto own = gradient.flatten().abs();
    const auto is_noise = at::maximum(own, theirs) <= kRounding * theirs.max();
    const auto step = at::where(is_noise, (own + theirs) * (kRate / kEpsilon), 0);
    // AdamW's averages still contain the noise of earlier steps. This noise can move the parameter again, at most as
    // far as before.
    slack[name] = slack.contains(name) ? slack[name] * 2 + step : step;
  }
}

// The shards of all ranks, one after the other.
Named whole_of(const std::vector<Named>& shards) {
  Named whole;
  for (const auto& [name, first] : shards[0]) {
    std::vector<at::Tensor> parts;
    for (const auto& of_rank : shards) parts.push_back(of_rank.at(name));
    whole[name] = at::cat(parts);
  }
  return whole;
}

std::vector<std::string> recorded_calls(const json& run) {
  std::vector<std::string> calls;
  const bool clips = run.at("options").contains("clip") && run.at("world") > 1;
  for (const auto& step : run.at("steps")) {
    for (const auto& call : step.at("calls")) {
      const bool gathers = call.at("op") == "all_gather_into_tensor";
      EXPECT_TRUE(gathers || (call.at("op") == "reduce_scatter_tensor" && call.at("reduce") == "RedOpType.SUM"));
      EXPECT_EQ(call.at("dtype"), "float64");
      calls.push_back(std::string(gathers ? "gather " : "scatter ") + call.at("in").dump() + " " +
                      call.at("out").dump());
    }
    if (clips) calls.push_back("norm 1 1");  // fsdp_reference.py does not record the call that reduces the norm
  }
  return calls;
}

std::int64_t elements(const std::vector<std::vector<std::int64_t>>& sizes) {
  EXPECT_EQ(sizes.size(), 1u);
  return c10::multiply_integers(sizes.at(0));
}

std::vector<std::string> calls_of(const rehearse::comm::EventLog& events, int rank) {
  std::vector<std::string> calls;
  for (const auto& event : events.of_rank(rank)) {
    const auto& call = events.signature(event);
    EXPECT_EQ(call.input_dtypes, std::vector<at::ScalarType>{at::kDouble});
    const char* const name = call.type == c10d::OpType::_ALLGATHER_BASE        ? "gather "
                             : call.type == c10d::OpType::_REDUCE_SCATTER_BASE ? "scatter "
                                                                               : "norm ";
    calls.push_back(name + std::to_string(elements(call.input_sizes)) + " " +
                    std::to_string(elements(call.output_sizes)));
  }
  return calls;
}

void expect_step(const json& recorded, const std::vector<std::vector<Step>>& steps, std::size_t index, Named* slack) {
  std::vector<Named> gradients, parameters;
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    const Step& step = steps[rank].at(index);
    gradients.push_back(step.gradients);
    parameters.push_back(step.parameters);
    const auto losses = recorded.at("losses")[rank].get<std::vector<double>>();
    ASSERT_EQ(step.losses.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(step.losses[i], losses[i], kRounding * losses[i]);
    if (recorded.at("norm").is_null()) continue;
    const auto norm = recorded.at("norm").get<double>();
    EXPECT_NEAR(step.norm, norm, kRounding * norm);
  }
  expect_values(whole_of(gradients), recorded.at("gradients"));
  if (slack) add_noise(*slack, whole_of(gradients), recorded.at("gradients"));
  expect_values(whole_of(parameters), recorded.at("parameters"), slack ? *slack : Named());
}

class FsdpRecorded : public ::testing::TestWithParam<std::string> {};

TEST_P(FsdpRecorded, Replay_IsPyTorchs) {
  const json& run = RecordedRuns::load().at(GetParam());
  const int ranks = run.at("world").get<int>();
  std::vector<std::vector<Step>> steps(static_cast<std::size_t>(ranks));  // by rank
  rehearse::World world({.ranks = ranks, .keep_all_events = true});
  const auto report = world.run([&](RankContext& ctx) {
    const auto model = model_of(run.at("case").get<std::string>());
    set_start(*model, run);
    Fsdp fsdp(model, ctx.group(), options_of(run));
    expect_shapes(run.at("local_shapes")[ctx.rank()], fsdp);
    const auto optimizer = optimizer_of(run, fsdp);
    for (int i = 0; i < static_cast<int>(run.at("steps").size()); ++i)
      steps[static_cast<std::size_t>(ctx.rank())].push_back(make_step(run, fsdp, *optimizer, ctx.rank(), i));
  });
  ASSERT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(calls_of(world.events(), rank), recorded_calls(run));
  Named slack;
  for (std::size_t i = 0; i < run.at("steps").size(); ++i) {
    SCOPED_TRACE(testing::Message() << "step " << i);
    expect_step(run.at("steps")[i], steps, i, run.at("optimizer") == "adamw" ? &slack : nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, FsdpRecorded, ::testing::ValuesIn(RecordedRuns::load().names()),
                         [](const auto& info) { return info.param; });

}  // namespace
