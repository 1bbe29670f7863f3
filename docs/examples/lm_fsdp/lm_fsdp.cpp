// SPDX-License-Identifier: BSD-3-Clause
// Trains the language model of lm_ddp with FullyShardedDataParallel, one unit for each block. While it runs, it checks
// that
//   - the gradients equal those of one process with the whole batch (every `reference_every` steps, in float64);
//   - the loss falls.
#include <torch/optim/adamw.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/fsdp.h>

#include "lm_ddp/language_model.h"
#include "lm_ddp/losses.h"
#include "lm_ddp/text.h"

namespace {

using Fsdp = rehearse::FullyShardedDataParallel<LanguageModel>;

// The whole model in float64, with the gradients that one process computes for the batch of all ranks. Every rank has
// equally many rows, so the mean of the ranks' mean losses is the mean over all rows.
LanguageModel reference_of(rehearse::RankContext& ctx, const ModelShape& shape, const rehearse::NamedTensors& state,
                           const Shards& shards, std::int64_t step, std::int64_t rows) {
  LanguageModel reference(shape);
  reference->to(ctx.device());
  auto parameters = reference->named_parameters();
  for (const auto& [name, tensor] : state) {
    if (auto* const own = parameters.find(name)) own->set_data(tensor.to(at::kDouble));
  }
  std::vector<at::Tensor> inputs, targets;
  for (int rank = 0; rank < ctx.size(); ++rank) {
    const auto batch = shards.batch(rank, step, rows);
    inputs.push_back(batch.input.to(ctx.device()));
    targets.push_back(batch.target.to(ctx.device()));
  }
  loss_of(reference(at::cat(inputs)), at::cat(targets)).backward();
  return reference;
}

// All ranks gather the gradients, and rank 0 compares them. Because of rounding, float32 gradients may differ from
// float64 gradients by 1e-5 of their length.
void check_gradients(rehearse::RankContext& ctx, const Fsdp& fsdp, const ModelShape& shape, const Shards& shards,
                     std::int64_t step, std::int64_t rows) {
  const auto state = fsdp.full_state_dict();
  LanguageModel reference = nullptr;
  if (ctx.rank() == 0) reference = reference_of(ctx, shape, state, shards, step, rows);
  for (const auto& [name, shard] : fsdp.named_parameters()) {
    const auto gradient = fsdp.gather_like(name, shard.grad());
    if (ctx.rank() != 0) continue;
    const auto& expected = reference->named_parameters()[name].grad();
    const double error = (gradient - expected).norm().item<double>();
    const double length = expected.norm().item<double>();
    ctx.expect(error <= 1e-5 * length + 1e-9, "gradients equal those of one process with the whole batch",
               name + " in step " + std::to_string(step) + ": off by " + std::to_string(error) + ", length " +
                   std::to_string(length));
  }
}

void train(rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
  const ModelShape shape{parameters.integer("context"), parameters.integer("layers"), parameters.integer("width"),
                         parameters.integer("heads"), parameters.flag("tied")};
  const auto steps = parameters.integer("steps"), rows = parameters.integer("batch");
  const auto reference_every = parameters.integer("reference_every");
  const Shards shards(read_text(parameters.text("text")), ctx.size(), shape.context);

  LanguageModel model(shape);
  model->to(ctx.device());  // to the rank's GPU if it has one
  Fsdp fsdp(model, ctx.group(), {.units = rehearse::UnitPolicy::of_type<BlockImpl>()});
  torch::optim::AdamW optimizer(fsdp.parameters(), torch::optim::AdamWOptions(parameters.number("learning_rate")));

  std::vector<double> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto batch = shards.batch(ctx.rank(), step, rows);
    fsdp.zero_grad();
    const auto loss = loss_of(fsdp.forward(batch.input.to(ctx.device())), batch.target.to(ctx.device()));
    loss.backward();
    if (step % reference_every == 0) check_gradients(ctx, fsdp, shape, shards, step, rows);
    ctx.result("norm", fsdp.clip_grad_norm_(parameters.number("max_norm")));
    optimizer.step();
    losses.push_back(mean_over_ranks(ctx, loss));
    ctx.result("loss", loss);
    ctx.progress(step + 1, steps, "loss " + std::to_string(losses.back()));
  }

  for (const auto& [name, shard] : fsdp.named_parameters()) ctx.result("shard of " + name, shard);
  for (const auto& [name, tensor] : fsdp.full_state_dict()) ctx.result(name, tensor);
  expect_falling(ctx, losses);
}

REHEARSE_PROGRAM(lm_fsdp){
    .summary = "a byte-level language model trained with FullyShardedDataParallel",
    .parameters = {{"text", std::string("."), "a file, or a folder with LICENSE, README.md and docs/**/*.md"},
                   {"steps", std::int64_t{40}, "training steps", 2, 1e6},
                   {"batch", std::int64_t{4}, "rows of text for each rank and step", 1, 1e4},
                   {"context", std::int64_t{64}, "bytes in a row", 2, 1e4},
                   {"layers", std::int64_t{4}, "transformer blocks, each a unit", 1, 100},
                   {"width", std::int64_t{128}, "numbers for each byte, a multiple of heads", 1, 1e4},
                   {"heads", std::int64_t{4}, "attention heads", 1, 100},
                   {"tied", true, "the output layer shares the embedding's weights"},
                   {"max_norm", 1.0, "of all gradients", 1e-6, 1e6},
                   {"learning_rate", 1e-3, "of AdamW", 0, 10},
                   {"reference_every", std::int64_t{10}, "steps between checks of the gradients", 1, 1e6}},
    .body = train};

}  // namespace
