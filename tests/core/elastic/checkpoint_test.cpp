// SPDX-License-Identifier: BSD-3-Clause
// Contract: load() restores the last saved state, to the bit, including the optimizer's. After a later round has saved,
// an earlier round saves nothing. If a late rank of an earlier round replaces the checkpoint while ranks load, all of
// them load the same checkpoint.
#include <rehearse/elastic/checkpoint.h>

#include <chrono>
#include <functional>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "bit_equal.h"
#include "elastic_world.h"

namespace rehearse::test {
namespace {

// The objects with which a rank trains.
struct Trained {
  Trained(elastic::Round& round, std::uint64_t seed, c10::intrusive_ptr<c10d::Store> store = {})
      : net((round.context().generator().set_current_seed(seed), elastic_ddp::Net())),
        optimizer(net->parameters(), elastic_ddp::with_momentum()),
        checkpoint(round, *net, optimizer, std::move(store)),
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
    EXPECT_THAT(before, BitEqual(elastic_ddp::parameters_of(trained.net)));
  });
}

// load() restores the momentum, too, so training goes on as if it had never stopped.
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
    EXPECT_THAT(again.after(3, 5), BitEqual(expected));
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
    EXPECT_THAT(elastic_ddp::parameters_of(loaded.net), BitEqual(elastic_ddp::parameters_of(current.net)));
  });
}

// Calls a function before each read of a checkpoint, but not before reads of the key that names the last checkpoint.
class WatchedStore final : public c10d::PrefixStore {
 public:
  WatchedStore(c10::intrusive_ptr<c10d::Store> store, std::function<void()> before_read)
      : PrefixStore("watched", std::move(store)), before_read_(std::move(before_read)) {}

  using PrefixStore::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override {
    note_read(key);
    return PrefixStore::compareSet(key, expected, desired);
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    note_read(key);
    return PrefixStore::get(key);
  }

 private:
  void note_read(const std::string& key) const {
    if (!key.ends_with("last") && before_read_) before_read_();
  }

  const std::function<void()> before_read_;
};

// Rank 0 reads which checkpoint is the last one. Before it reads this checkpoint, a late rank replaces the checkpoint.
TEST(Checkpoint, ReplacedByALateRankBetweenTheReads_LoadsTheLaterOne) {
  in_rounds([](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx);
    elastic::Round first(ctx, rendezvous, rendezvous.next(), 0);
    Trained late(first, 1, c10::make_intrusive<WatchedStore>(ctx.store(), nullptr));
    late.checkpoint.save(1);
    elastic::Round second(ctx, rendezvous, rendezvous.next(), 0);
    bool is_late = true;
    const auto save = [&] {
      if (std::exchange(is_late, false)) late.checkpoint.save(2);
    };
    Trained loaded(second, 2, c10::make_intrusive<WatchedStore>(ctx.store(), save));
    EXPECT_EQ(loaded.checkpoint.load(), 2);
    EXPECT_THAT(elastic_ddp::parameters_of(loaded.net), BitEqual(elastic_ddp::parameters_of(late.net)));
  });
}

// When rank 0 has loaded the checkpoint, a late rank replaces it. If rank 1 read the store, too, it would do so a
// second later, and would find the new checkpoint.
TEST(Checkpoint, ReplacedByALateRankWhileOthersLoad_IsTheSameOnAll) {
  in_rounds([](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx);
    elastic::Round first(ctx, rendezvous, rendezvous.next(), 0);
    Trained late(first, 1, c10::make_intrusive<WatchedStore>(ctx.store(), nullptr));
    late.checkpoint.save(1);
    const auto expected = elastic_ddp::parameters_of(late.net);
    elastic::Round second(ctx, rendezvous, rendezvous.next(), 0);
    const auto wait = [&ctx] { ctx.compute(std::chrono::seconds(1)); };
    const std::function<void()> before_read = ctx.rank() == 0 ? std::function<void()>() : wait;
    Trained loaded(second, 2, c10::make_intrusive<WatchedStore>(ctx.store(), before_read));
    EXPECT_EQ(loaded.checkpoint.load(), 1);
    if (ctx.rank() == 0) {
      const at::NoGradGuard no_grad;
      late.net->hidden->bias.add_(1);
      late.checkpoint.save(2);
    }
    EXPECT_THAT(elastic_ddp::parameters_of(loaded.net), BitEqual(expected));
  });
}

TEST(Checkpoint, LostByTheStore_IsNamed) {
  in_rounds([](RankContext& ctx) {
    if (ctx.rank() != 0) return;
    elastic::RendezvousOptions alone{.min_ranks = 1, .last_call = std::chrono::milliseconds(1)};
    elastic::Rendezvous rendezvous(ctx, alone);
    elastic::Round round(ctx, rendezvous, rendezvous.next(), 0);
    Trained trained(round, 1);
    trained.checkpoint.save(3);
    ctx.store()->deleteKey("checkpoint/0/3");
    try {
      trained.checkpoint.load();
      ADD_FAILURE() << "it was loaded";
    } catch (const c10::DistStoreError& error) {
      EXPECT_STREQ(error.what_without_backtrace(),
                   "elastic::Checkpoint::load(): the store has lost the checkpoint of round 0 after 3 steps, the last "
                   "one. Nothing but this class may delete keys under \"checkpoint\"");
    }
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
