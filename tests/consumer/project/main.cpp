// SPDX-License-Identifier: BSD-3-Clause
// A user's smallest program: rehearse::main turns the executable into the command.
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

REHEARSE_PROGRAM(consumer){.summary = "barriers and nothing else",
                           .parameters = {{"steps", std::int64_t{20}, "barriers", 1, 1000}},
                           .body = [](rehearse::RankContext& ctx, const rehearse::Parameters& parameters) {
                             for (int i = 0; i < parameters.integer("steps"); ++i) ctx.group().barrier()->wait();
                             ctx.expect(ctx.size() == 4, "the scenario's ranks are here");
                           }};
