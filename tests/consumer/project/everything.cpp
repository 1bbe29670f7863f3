// SPDX-License-Identifier: BSD-3-Clause
// A project that names no component: it links rehearse::main alone, and uses what the other libraries hold.
#include <torch/nn/modules/linear.h>

#include <rehearse/comm/object_collectives.h>
#include <rehearse/compile/compile.h>
#include <rehearse/elastic/run.h>
#include <rehearse/job/program.h>
#include <rehearse/job/rank_context.h>

REHEARSE_PROGRAM(everything){
    .summary = "a compiled module, objects of all ranks, an elastic round",
    .body = [](rehearse::RankContext& ctx, const rehearse::Parameters&) {
      torch::nn::Linear net(3, 2);
      auto compiled = rehearse::compile(net);
      const auto x = at::ones({4, 3});
      ctx.expect(compiled(x).equal(net->forward(x)), "the compiled module gives what the module gives");

      const auto objects = rehearse::comm::all_gather_object(ctx.group(), std::to_string(ctx.rank()));
      ctx.expect(objects.at(1) == "1", "rank 1 has sent its object");

      rehearse::elastic::run(ctx, [&](rehearse::elastic::Round& round) {
        ctx.expect(round.ranks().size() == 2, "the round has all ranks");
      });
    }};
