// SPDX-License-Identifier: BSD-3-Clause
// Programs for comparing modes: one that is right, and some that are wrong in the same way in all of them.
#include <chrono>

#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>

#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

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

REHEARSE_PROGRAM(differs){.summary = "rank 1 sums up another shape", .body = [](RankContext& ctx, const Parameters&) {
                            auto value = at::full({ctx.rank() == 1 ? 3 : 2}, 1.0);
                            ctx.group().allreduce(value)->wait();
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
