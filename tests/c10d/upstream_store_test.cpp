// SPDX-License-Identifier: BSD-3-Clause
// Contract: a world's store, alone and below a PrefixStore, passes the cases of PyTorch's own C++ tests of its hash and
// file stores. tests/README.md says which test covers which case.
#include <string>

#include <gtest/gtest.h>
#include <rehearse/rehearse.h>
#include <rehearse_internal/exec/this_rank.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace rehearse {
namespace {

using namespace std::chrono_literals;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

class UpstreamStore : public testing::TestWithParam<const char*> {
 protected:
  static StorePtr of(RankContext& ctx) {
    const std::string prefix = GetParam();
    if (prefix.empty()) return ctx.store();
    return c10::make_intrusive<c10d::PrefixStore>(prefix, ctx.store());
  }
};

TEST_P(UpstreamStore, GetAndSet) {
  check({.ranks = 1}, [](RankContext& ctx) {
    const auto store = of(ctx);
    for (const char* const name : {"0", "1", "2"}) store->set(std::string("key") + name, std::string("value") + name);
    for (const char* const name : {"0", "1", "2"}) {
      EXPECT_EQ(store->get_to_str(std::string("key") + name), std::string("value") + name);
    }
    store->compareSet("key0", "something else", "new");
    EXPECT_EQ(store->get_to_str("key0"), "value0");
    store->compareSet("key0", "value0", "new");
    EXPECT_EQ(store->get_to_str("key0"), "new");
    EXPECT_EQ(store->getNumKeys(), 3);
    EXPECT_TRUE(store->deleteKey("key0"));
    EXPECT_EQ(store->getNumKeys(), 2);
    EXPECT_FALSE(store->deleteKey("no such key"));
    store->setTimeout(100ms);
    const auto before = ctx.now();
    EXPECT_THROW(store->get("key0"), c10::DistStoreError);
    EXPECT_EQ(ctx.now(), before + 100ms);
  });
}

TEST_P(UpstreamStore, Get_WaitsForAnotherRanksSet) {
  check({.ranks = 2}, [](RankContext& ctx) {
    const auto store = of(ctx);
    if (ctx.rank() == 0) {
      EXPECT_EQ(store->get_to_str("key0"), "value0");
    } else {
      exec::this_rank::sleep_for(7ms);
      store->set("key0", "value0");
    }
  });
}

// In PyTorch's test, a second file store finds the keys in the file. Here, another handle of the world's store finds
// them.
TEST_P(UpstreamStore, AnotherHandle_SeesTheSameKeys) {
  check({.ranks = 1}, [](RankContext& ctx) {
    of(ctx)->set("key0", "value0");
    const auto again = of(ctx)->clone();
    EXPECT_EQ(again->get_to_str("key0"), "value0");
    EXPECT_EQ(again->getNumKeys(), 1);
  });
}

TEST_P(UpstreamStore, Add_CountsEveryRanksSteps) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    check({.ranks = 4, .seed = seed}, [](RankContext& ctx) {
      const auto store = of(ctx);
      for (int i = 0; i < 100; ++i) {
        store->add("counter", 1);
        if (i % 10 == ctx.rank()) exec::this_rank::yield();
      }
      ctx.group().barrier()->wait();
      EXPECT_EQ(store->get_to_str("counter"), "400");
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Prefixes, UpstreamStore, testing::Values("", "testPrefix"),
                         [](const auto& info) { return std::string(*info.param != 0 ? "WithPrefix" : "Alone"); });

}  // namespace
}  // namespace rehearse
