// SPDX-License-Identifier: BSD-3-Clause
// Contract: load() restores the last saved state, to the bit, including the optimizer's. A round that is over saves
// nothing.
#include <rehearse/elastic/checkpoint.h>

#include "elastic_world.h"

namespace rehearse::test {
namespace {

// The objects with which a rank trains.
struct Trained {
  Trained(elastic::Round& round, std::uint64_t seed)
      : net((round.context().generator().set_current_seed(seed), elastic_ddp::Net())),
        optimizer(net->parameters(), elastic_ddp::with_momentum()),
        checkpoint(round, *net, optimizer),
        group(round.group()) {}

  at::Tensor after(std::int64_t from, std::int64_t to) {
    DistributedDataParallel ddp(net, group);
    for (auto step = from; step < to; ++step) elastic_ddp::train_step(ddp, optimizer, group, step, 4);
    return elastic_ddp::parameters_of(net);
  }

  elastic_ddp::Net net;
  torch::optim::SGD optimizer;
  elastic::Checkpoint checkpoint;
  Group group;
};

void in_rounds(const World::Body& body) {
  World world(elastic_world({}, 2));
  const auto report = world.run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(Checkpoint, None_IsStepZeroAndChangesNothing) {
  in_rounds([](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx);
    elastic::Round round(ctx, rendezvous, rendezvous.next(), 0);
    Trained trained(round, 1);
    const auto before = elastic_ddp::parameters_of(trained.net);
    EXPECT_EQ(trained.checkpoint.load(), 0);
    EXPECT_TRUE(at::equal(before, elastic_ddp::parameters_of(trained.net)));
  });
}

// Momentum comes back, too: training goes on as if it had never stopped.
TEST(Checkpoint, LastOne_ComesBackWithTheOptimizer) {
  in_rounds([](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx);
    elastic::Round first(ctx, rendezvous, rendezvous.next(), 0);
    Trained trained(first, 1);
    for (std::int64_t step = 0; step < 3; ++step) {
      trained.after(step, step + 1);
      trained.checkpoint.save(step + 1);
    }
    const auto expected = trained.after(3, 5);
    elastic::Round second(ctx, rendezvous, rendezvous.next(), 0);
    Trained again(second, 7);
    EXPECT_EQ(again.checkpoint.load(), 3);
    EXPECT_TRUE(at::equal(again.after(3, 5), expected));
  });
}

TEST(Checkpoint, OfARoundThatIsOver_IsNotKept) {
  in_rounds([](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx);
    elastic::Round first(ctx, rendezvous, rendezvous.next(), 0);
    elastic::Round second(ctx, rendezvous, rendezvous.next(), 0);
    Trained late(first, 1), current(second, 2);
    if (ctx.rank() == 0) {
      late.checkpoint.save(1);
      current.checkpoint.save(2);
      late.checkpoint.save(9);
    }
    elastic::Round third(ctx, rendezvous, rendezvous.next(), 0);
    Trained loaded(third, 3);
    EXPECT_EQ(loaded.checkpoint.load(), 2);
    EXPECT_TRUE(at::equal(elastic_ddp::parameters_of(loaded.net), elastic_ddp::parameters_of(current.net)));
  });
}

TEST(Checkpoint, OfAModuleOfAnotherShape_IsRefused) {
  in_rounds([](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx);
    elastic::Round round(ctx, rendezvous, rendezvous.next(), 0);
    torch::nn::Linear saved(8, 1), other(8, 2);
    torch::optim::SGD of_saved(saved->parameters(), 0.1), of_other(other->parameters(), 0.1);
    elastic::Checkpoint(round, *saved, of_saved).save(1);
    elastic::Checkpoint checkpoint(round, *other, of_other);
    try {
      checkpoint.load();
      ADD_FAILURE() << "it was loaded";
    } catch (const c10::Error& error) {
      EXPECT_STREQ(error.what_without_backtrace(),
                   "elastic::Checkpoint::load(): \"weight\" is Float[2, 8] in the module and Float[1, 8] in the "
                   "checkpoint, which is of another module");
    }
    EXPECT_EQ(other->weight.sizes(), at::IntArrayRef({2, 8}));
    EXPECT_EQ(other->bias.sizes(), at::IntArrayRef({2}));
  });
}

}  // namespace
}  // namespace rehearse::test
