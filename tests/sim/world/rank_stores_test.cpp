// SPDX-License-Identifier: BSD-3-Clause
// Ranks make c10d's own stores. A FileStore and a HashStore work in a world. A TCPStore is refused, because it waits in
// sockets.
#include <filesystem>
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

namespace {

using rehearse::RankContext;
using rehearse::Verdict;

class RankStores : public ::testing::TestWithParam<std::tuple<int, std::uint64_t>> {
 protected:
  rehearse::Report run(const rehearse::World::Body& body) const {
    return rehearse::World({.ranks = std::get<0>(GetParam()), .seed = std::get<1>(GetParam())}).run(body);
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, RankStores, ::testing::Combine(::testing::Values(2, 3, 8), ::testing::Values(1, 2)));

TEST_P(RankStores, TcpStore_IsRefusedAtOnceWithTheWayOut) {
  const auto report = run([](RankContext& ctx) {
    c10d::TCPStoreOptions options;
    options.isServer = ctx.rank() == 0;
    static_cast<void>(c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options));
  });
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  const auto text = rehearse::sim::to_text(report);
  EXPECT_NE(text.find("made a c10d::TCPStore"), std::string::npos) << text;
  EXPECT_NE(text.find("ctx.store()"), std::string::npos) << text;
  EXPECT_NE(text.find("rank_stores_test.cpp:"), std::string::npos) << text;
}

TEST_P(RankStores, TcpStore_CanBeCaught) {
  const auto report = run([](RankContext& ctx) {
    EXPECT_THROW(c10::make_intrusive<c10d::TCPStore>("127.0.0.1"), std::runtime_error);
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << rehearse::sim::to_text(report);
}

TEST(RankStoresOutside, TcpStore_IsLibTorchs) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  store->set("key", std::vector<std::uint8_t>{7});
  EXPECT_EQ(store->get("key"), std::vector<std::uint8_t>{7});
}

void exchange(c10d::Store& store, const RankContext& ctx) {
  store.set("rank" + std::to_string(ctx.rank()), std::vector<std::uint8_t>{static_cast<std::uint8_t>(ctx.rank())});
  for (int rank = 0; rank < ctx.size(); ++rank) {
    EXPECT_EQ(store.get("rank" + std::to_string(rank)), std::vector<std::uint8_t>{static_cast<std::uint8_t>(rank)});
  }
  store.add("done", 1);
}

TEST_P(RankStores, FileStore_IsLockedByOneRankAtATime) {
  const auto file = std::filesystem::temp_directory_path() / ("rehearse_store_" + std::to_string(getpid()));
  std::filesystem::remove(file);
  const auto report = run([&](RankContext& ctx) {
    const auto store = c10::make_intrusive<c10d::FileStore>(file.string(), ctx.size());
    exchange(*store, ctx);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << rehearse::sim::to_text(report);
  std::filesystem::remove(file);
}

TEST_P(RankStores, HashStore_IsSharedByRanks) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto report = run([&](RankContext& ctx) { exchange(*store, ctx); });
  EXPECT_EQ(report.verdict, Verdict::ok) << rehearse::sim::to_text(report);
}

}  // namespace
