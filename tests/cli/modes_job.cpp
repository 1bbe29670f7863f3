// SPDX-License-Identifier: BSD-3-Clause
// Programs for tests that compare modes, and for tests of how real runs end. Some are correct, the others have
// mistakes.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/parallel/fsdp.h>

using rehearse::Parameters;
using rehearse::RankContext;

REHEARSE_PROGRAM(tells){.summary = "says what it has come to, of random numbers",
                        .parameters = {{"integers", false, "what all modes compute alike to the bit"}},
                        .body = [](RankContext& ctx, const Parameters& parameters) {
                          auto value = at::rand({64}, ctx.generator()) + ctx.rank();
                          if (parameters.flag("integers")) value = (value * 1000).to(at::kLong);
                          const auto name = ctx.label("numbers");
                          ctx.group().allreduce(value)->wait();
                          ctx.result("sum", value);
                          ctx.result("rank", at::full({1}, ctx.rank(), at::kInt));
                        }};

REHEARSE_PROGRAM(shards){.summary = "checks the gradients of a sharded model",
                         .body = [](RankContext& ctx, const Parameters&) {
                           torch::nn::Linear net(4, 4);
                           rehearse::FullyShardedDataParallel fsdp(net, ctx.group());
                           const auto loss = [](const at::Tensor& output) { return output.square().mean(); };
                           const auto x = at::full({2, 4}, 0.5);
                           loss(fsdp(x)).backward();
                           ctx.check_gradients(fsdp, [&] { return loss(net(x)); });
                         }};

REHEARSE_PROGRAM(differs){.summary = "rank 1 sums up another shape", .body = [](RankContext& ctx, const Parameters&) {
                            auto value = at::full({ctx.rank() == 1 ? 3 : 2}, 1.0);
                            ctx.group().allreduce(value)->wait();
                          }};

REHEARSE_PROGRAM(until_told){.summary = "all-reduces until there is a file \"enough\"",
                             .body = [](RankContext& ctx, const Parameters&) {
                               auto go_on = at::full({1}, 1.0);
                               for (std::int64_t step = 1; go_on.item<double>() > 0; ++step) {
                                 if (ctx.rank() == 0 && std::filesystem::exists("enough")) go_on.fill_(-1000);
                                 ctx.group().allreduce(go_on)->wait();
                                 if (step == 1) std::cout << "under way" << std::endl;
                                 if (go_on.item<double>() > 0) go_on.fill_(1);
                               }
                             }};

[[noreturn, gnu::noinline]] void stay_for_ever(bool compute) {
  std::cout << "staying" << std::endl;
  for (volatile unsigned value = 0;;) {
    value = value + 1;
    if (!compute) ::pause();
  }
}

REHEARSE_PROGRAM(stuck){.summary = "rank 2 does not come to a call in which the others wait already",
                        .parameters = {{"computes", true, "or waits in the kernel"}},
                        .body = [](RankContext& ctx, const Parameters& parameters) {
                          if (ctx.rank() != 2) ctx.store()->set("here/" + std::to_string(ctx.rank()), "here");
                          if (ctx.rank() == 2) {
                            ctx.store()->wait({"here/0", "here/1"});
                            ctx.compute(std::chrono::seconds(1));
                            stay_for_ever(parameters.flag("computes"));
                          }
                          ctx.group().barrier()->wait();
                        }};

REHEARSE_PROGRAM(all_stay){.summary = "no rank comes to a call", .body = [](RankContext& ctx, const Parameters&) {
                             if (ctx.rank() != 2) ctx.store()->set("here/" + std::to_string(ctx.rank()), "here");
                             if (ctx.rank() == 2) ctx.store()->wait({"here/0", "here/1"});
                             if (ctx.rank() == 2) ctx.compute(std::chrono::seconds(1));
                             stay_for_ever(ctx.rank() == 1);
                           }};

REHEARSE_PROGRAM(asks){.summary = "rank 2 asks for a key that nobody sets, while the others wait for it",
                       .body = [](RankContext& ctx, const Parameters&) {
                         ctx.group().barrier()->wait();
                         if (ctx.rank() == 2) {
                           std::cout << "asking" << std::endl;
                           ctx.store()->get("never");
                         }
                         ctx.group().barrier()->wait();
                       }};

REHEARSE_PROGRAM(leaves_ddp_out){.summary = "calls the module in the place of its DistributedDataParallel",
                                 .body = [](RankContext& ctx, const Parameters&) {
                                   torch::nn::Linear net(3, 1);
                                   rehearse::DistributedDataParallel ddp(net, ctx.group());
                                   net(at::full({4, 3}, ctx.rank() + 1.0)).pow(2).mean().backward();
                                 }};

REHEARSE_PROGRAM(late){.summary = "rank 1 comes after the others have given up",
                       .parameters = {{"seconds", 3.0, "how much later", 0, 60}},
                       .body = [](RankContext& ctx, const Parameters& parameters) {
                         const std::chrono::duration<double> seconds(parameters.number("seconds"));
                         if (ctx.rank() == 1)
                           ctx.compute(std::chrono::duration_cast<rehearse::VirtualDuration>(seconds));
                         auto value = at::full({1}, 1.0);
                         ctx.group().allreduce(value)->wait();
                       }};

void waits_and_must_not_throw(RankContext& ctx) noexcept { ctx.group().barrier()->wait(); }

REHEARSE_PROGRAM(waits_in_noexcept){.summary = "rank 1 throws, and the others wait for it in a noexcept function",
                                    .body = [](RankContext& ctx, const Parameters&) {
                                      if (ctx.rank() == 1) throw std::runtime_error("the dataset is empty");
                                      waits_and_must_not_throw(ctx);
                                    }};
