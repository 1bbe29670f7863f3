// SPDX-License-Identifier: BSD-3-Clause
// Trains a small language model with DistributedDataParallel. While it runs, it checks that
//   - after each step all replicas hold the same bits;
//   - the gradients equal those of one process with the whole batch (every `reference_every` steps, in float64);
//   - the loss falls.
#include <torch/optim/adamw.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "language_model.h"
#include "losses.h"
#include "text.h"

namespace {

at::Tensor flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  for (const auto& tensor : tensors) parts.push_back(tensor.detach().flatten());
  return at::cat(parts);
}

// Every rank compares its parameters with rank 0's, bit for bit.
void check_replicas(rehearse::RankContext& ctx, const std::vector<at::Tensor>& parameters) {
  const auto mine = flat(parameters);
  auto of_rank_0 = mine.clone();
  ctx.group().broadcast(of_rank_0)->wait();
  ctx.expect(at::equal(mine.view(at::kInt), of_rank_0.view(at::kInt)), "replicas hold the same bits");
}

// Returns a copy of the model in float64.
LanguageModel double_copy(LanguageModel& model) {
  LanguageModel copy(model->shape);
  copy->to(model->parameters()[0].device());
  const auto from = model->parameters();
  auto to = copy->parameters();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].set_data(from[i].detach().to(at::kDouble));
  return copy;
}

// Rank 0 alone computes the gradients for the batch of all ranks. Every rank has equally many rows, so the mean of
// the ranks' mean losses is the mean over all rows. Because of rounding, float32 gradients may differ from float64
// gradients by 1e-5 of their length.
void check_gradients(rehearse::RankContext& ctx, LanguageModel& model, const Shards& shards, std::int64_t step,
                     std::int64_t rows) {
  auto reference = double_copy(model);
  std::vector<at::Tensor> inputs, targets;
  for (int rank = 0; rank < ctx.size(); ++rank) {
    auto batch = shards.batch(rank, step, rows);
    inputs.push_back(batch.input.to(ctx.device()));
    targets.push_back(batch.target.to(ctx.device()));
  }
  loss_of(reference(at::cat(inputs)), at::cat(targets)).backward();
  for (const auto& item : model->named_parameters()) {
    const auto& expected = reference->named_parameters()[item.key()].grad();
    const double error = (item.value().grad() - expected).norm().item<double>();
    const double length = expected.norm().item<double>();
    ctx.expect(error <= 1e-5 * length + 1e-9, "gradients equal those of one process with the whole batch",
               item.key() + " in step " + std::to_string(step) + ": off by " + std::to_string(error) + ", length " +
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
  rehearse::DistributedDataParallel ddp(
      model, ctx.group(), {.bucket_cap_mb = parameters.number("bucket_cap_mb"), .gradient_as_bucket_view = true});
  torch::optim::AdamW optimizer(ddp.parameters(), torch::optim::AdamWOptions(parameters.number("learning_rate")));

  std::vector<double> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto batch = shards.batch(ctx.rank(), step, rows);
    ddp.zero_grad(/*set_to_none=*/false);
    const auto loss = loss_of(ddp.forward(batch.input.to(ctx.device())), batch.target.to(ctx.device()));
    loss.backward();
    if (ctx.rank() == 0 && step % reference_every == 0) check_gradients(ctx, model, shards, step, rows);
    optimizer.step();
    check_replicas(ctx, ddp.parameters());
    losses.push_back(mean_over_ranks(ctx, loss));
    ctx.result("loss", loss);
    ctx.progress(step + 1, steps, "loss " + std::to_string(losses.back()));
  }

  for (const auto& item : model->named_parameters()) ctx.result(item.key(), item.value());

  expect_falling(ctx, losses);
}

REHEARSE_PROGRAM(lm_ddp){
    .summary = "a byte-level language model trained with DistributedDataParallel",
    .parameters = {{"text", std::string("."), "a file, or a folder with LICENSE, README.md and docs/**/*.md"},
                   {"steps", std::int64_t{40}, "training steps", 2, 1e6},
                   {"batch", std::int64_t{4}, "rows of text for each rank and step", 1, 1e4},
                   {"context", std::int64_t{64}, "bytes in a row", 2, 1e4},
                   {"layers", std::int64_t{4}, "transformer blocks", 1, 100},
                   {"width", std::int64_t{128}, "numbers for each byte, a multiple of heads", 1, 1e4},
                   {"heads", std::int64_t{4}, "attention heads", 1, 100},
                   {"tied", true, "the output layer shares the embedding's weights"},
                   {"bucket_cap_mb", 1.0, "MiB of gradients reduced together", 1e-6, 1e4},
                   {"learning_rate", 1e-3, "of AdamW", 0, 10},
                   {"reference_every", std::int64_t{10}, "steps between checks of the gradients", 1, 1e6}},
    .body = train};

}  // namespace
