// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "network/network_cost.h"

namespace rehearse::sim {
namespace {

using c10d::OpType;

// Answers every choice with one number, and records the questions.
class FixedOracle final : public Oracle {
 public:
  explicit FixedOracle(std::uint32_t answer) : answer_(answer) {}
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t>) override {
    asked.push_back({kind, static_cast<std::uint32_t>(candidates.size()), answer_});
    return answer_;
  }
  std::vector<Decision> asked;

 private:
  std::uint32_t answer_;
};

at::Tensor bytes(std::int64_t count) { return at::zeros({count}, at::kByte); }

comm::Operation call(comm::TensorList inputs, comm::TensorList outputs = {}) {
  comm::Operation operation;
  operation.inputs = std::move(inputs);
  operation.outputs = std::move(outputs);
  return operation;
}

// 3 us latency and 1 GB/s: a byte takes a nanosecond.
struct Network {
  NetworkModel model{.latency = std::chrono::microseconds(3), .bytes_per_second = 1e9, .jitter = 0};
  FixedOracle oracle{15};
  DecisionLog log;
  Decisions decisions{oracle, log};

  std::int64_t duration(OpType type, std::vector<comm::Operation> calls, int ranks = 0) {
    std::vector<comm::Operation*> pointers;
    for (auto& operation : calls) pointers.push_back(&operation);
    comm::GroupIdentity group;
    group.ranks.resize(ranks > 0 ? static_cast<std::size_t>(ranks) : calls.size());
    std::iota(group.ranks.begin(), group.ranks.end(), 0);
    comm::Transfer transfer;
    transfer.type = type;
    transfer.group = &group;
    transfer.calls = pointers;
    return NetworkCost(model, decisions).duration(transfer).count();
  }

  std::int64_t of_equal_calls(OpType type, int ranks, const comm::Operation& operation) {
    return duration(type, std::vector<comm::Operation>(static_cast<std::size_t>(ranks), operation));
  }
};

TEST(NetworkCost, SendReceive_OneLatencyAndTheBytes) {
  Network network;
  EXPECT_EQ(network.duration(OpType::SEND, {call({bytes(1000)}), call({}, {bytes(1000)})}, 8), 3'000 + 1'000);
  EXPECT_EQ(network.duration(OpType::SEND, {call({bytes(0)}), call({}, {bytes(0)})}, 8), 3'000);
}

TEST(NetworkCost, Barrier_TreeUpAndDown) {
  Network network;
  const auto barrier = [&](int ranks) { return network.of_equal_calls(OpType::BARRIER, ranks, call({})); };
  EXPECT_EQ(barrier(1), 0);
  EXPECT_EQ(barrier(2), 2 * 1 * 3'000);
  EXPECT_EQ(barrier(3), 2 * 2 * 3'000);
  EXPECT_EQ(barrier(4), 2 * 2 * 3'000);
  EXPECT_EQ(barrier(5), 2 * 3 * 3'000);
  EXPECT_EQ(barrier(8), 2 * 3 * 3'000);
}

TEST(NetworkCost, BroadcastReduceScatterGather_BinomialTreeAndTheRootsBytes) {
  Network network;
  const auto whole = call({bytes(800)}, {bytes(800)});
  EXPECT_EQ(network.of_equal_calls(OpType::BROADCAST, 8, whole), 3 * 3'000 + 800);
  EXPECT_EQ(network.of_equal_calls(OpType::REDUCE, 3, whole), 2 * 3'000 + 800);

  const auto leaf = call({bytes(100)});
  const auto gather_root = call({bytes(100)}, {bytes(100), bytes(100), bytes(100), bytes(100)});
  EXPECT_EQ(network.duration(OpType::GATHER, {leaf, leaf, gather_root, leaf}), 2 * 3'000 + 400);

  const auto scatter_leaf = call({}, {bytes(100)});
  const auto scatter_root = call({bytes(100), bytes(100), bytes(100), bytes(100)}, {bytes(100)});
  EXPECT_EQ(network.duration(OpType::SCATTER, {scatter_leaf, scatter_root, scatter_leaf, scatter_leaf}),
            2 * 3'000 + 400);
}

TEST(NetworkCost, AllReduce_Ring) {
  Network network;
  const auto operation = call({bytes(1200)}, {bytes(1200)});
  EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 1, operation), 0);
  EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 2, operation), 2 * 3'000 + 1'200);
  EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 4, operation), 6 * 3'000 + 1'800);  // 2 * 3/4 * 1200
  EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 3, operation), 4 * 3'000 + 1'600);  // 2 * 2/3 * 1200
  // 2 * 2/3 * 100 = 133.33, rounded to the nearest nanosecond.
  EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 3, call({bytes(100)})), 4 * 3'000 + 133);
}

TEST(NetworkCost, AllGatherReduceScatterAllToAll_HalfARing) {
  Network network;
  const auto gathered = call({bytes(100)}, {bytes(100), bytes(100), bytes(100), bytes(100)});
  EXPECT_EQ(network.of_equal_calls(OpType::ALLGATHER, 4, gathered), 3 * 3'000 + 300);
  EXPECT_EQ(network.of_equal_calls(OpType::_ALLGATHER_BASE, 4, call({bytes(100)}, {bytes(400)})), 3 * 3'000 + 300);
  const auto scattered = call({bytes(100), bytes(100), bytes(100), bytes(100)}, {bytes(100)});
  EXPECT_EQ(network.of_equal_calls(OpType::REDUCE_SCATTER, 4, scattered), 3 * 3'000 + 300);
  EXPECT_EQ(network.of_equal_calls(OpType::_REDUCE_SCATTER_BASE, 4, call({bytes(400)}, {bytes(100)})), 3 * 3'000 + 300);
  EXPECT_EQ(network.of_equal_calls(OpType::ALLTOALL, 4, call({bytes(400)}, {bytes(400)})), 3 * 3'000 + 300);
  EXPECT_EQ(network.of_equal_calls(OpType::ALLTOALL_BASE, 4, call({bytes(400)}, {bytes(400)})), 3 * 3'000 + 300);
}

TEST(NetworkCost, CoalescedCalls_ShareTheirLatencies) {
  Network network;
  const auto part = [](OpType type, comm::Operation operation) {
    operation.type = type;
    return operation;
  };
  comm::Operation coalesced;
  coalesced.parts = {part(OpType::ALLREDUCE, call({bytes(1200)})), part(OpType::ALLREDUCE, call({bytes(600)})),
                     part(OpType::_ALLGATHER_BASE, call({bytes(100)}, {bytes(400)}))};
  // All parts share the 6 latencies of the all-reduces. The all-reduces move 2 * 3/4 of 1800 bytes, and the all-gather
  // moves 3/4 of 400 bytes.
  EXPECT_EQ(network.of_equal_calls(OpType::COALESCED, 4, coalesced), 6 * 3'000 + 2'700 + 300);
  EXPECT_EQ(network.of_equal_calls(OpType::COALESCED, 1, coalesced), 0);
}

// Every rank gets all indices (8 bytes each) and values (4 bytes each).
TEST(NetworkCost, SparseAllReduce_AsAllGather) {
  Network network;
  const auto sparse = [](std::int64_t count) {
    return call({at::sparse_coo_tensor(at::zeros({1, count}, at::kLong), at::ones({count}), {100})});
  };
  EXPECT_EQ(network.duration(OpType::_ALLREDUCE_SPARSE, {sparse(10), sparse(0), sparse(30)}), 2 * 3'000 + 2 * 480 / 3);
}

TEST(NetworkCost, UnevenSizes_TheBusiestRankCounts) {
  Network network;
  EXPECT_EQ(
      network.duration(OpType::ALLTOALL_BASE, {call({bytes(100)}, {bytes(700)}), call({bytes(1000)}, {bytes(400)})}),
      3'000 + 500);
  EXPECT_EQ(network.duration(OpType::ALLGATHER, {call({bytes(300)}, {bytes(300), bytes(900)}),
                                                 call({bytes(900)}, {bytes(300), bytes(900)})}),
            3'000 + 600);
}

TEST(NetworkCost, ElementsAndViews_CountTheirOwnBytes) {
  Network network;
  const auto send = [&](const at::Tensor& tensor) {
    return network.duration(OpType::SEND, {call({tensor}), call({}, {tensor})}) - 3'000;
  };
  EXPECT_EQ(send(at::zeros({10}, at::kDouble)), 80);
  EXPECT_EQ(send(at::zeros({10, 10}, at::kFloat).t().slice(0, 0, 5)), 200);
  EXPECT_EQ(send(at::zeros({}, at::kHalf)), 2);
  const auto index = at::zeros({1, 3}, at::kLong);
  EXPECT_EQ(send(at::sparse_coo_tensor(index, at::ones({3}, at::kFloat), {100})), 3 * 8 + 3 * 4);
}

TEST(NetworkCost, Jitter_SixteenStepsFromNoneToAllOfIt) {
  for (std::uint32_t step = 0; step < 16; ++step) {
    Network network;
    network.model.jitter = 0.3;
    network.oracle = FixedOracle(step);
    EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 4, call({bytes(8000)})), 30'000 + 600 * step);
    EXPECT_EQ(network.oracle.asked, (std::vector<Decision>{{ChoiceKind::latency, 16, step}}));
    EXPECT_EQ(network.log.decisions().size(), 1u);
  }
}

TEST(NetworkCost, NoJitterOrNoTime_NothingIsAsked) {
  Network network;
  network.of_equal_calls(OpType::BARRIER, 4, call({}));
  network.model.jitter = 1;
  EXPECT_EQ(network.of_equal_calls(OpType::BARRIER, 1, call({})), 0);
  EXPECT_TRUE(network.oracle.asked.empty());
}

TEST(NetworkCost, VerySlowNetwork_TimeStaysInRange) {
  Network network;
  network.model.bytes_per_second = 1e-300;
  EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 2, call({bytes(1)})), std::int64_t{1} << 61);
  network.model.bytes_per_second = std::numeric_limits<double>::infinity();
  EXPECT_EQ(network.of_equal_calls(OpType::ALLREDUCE, 2, call({bytes(1)})), 6'000);
}

TEST(NetworkCost, ModelThatMakesNoSense_AllFieldsAreNamed) {
  DecisionLog log;
  FixedOracle oracle(0);
  Decisions decisions(oracle, log);
  try {
    NetworkCost({.latency = std::chrono::nanoseconds(-5), .bytes_per_second = 0, .jitter = -0.5}, decisions);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "WorldOptions::network.latency is -5 ns; it is 0 or more\n"
                 "WorldOptions::network.bytes_per_second is 0; it is more than 0\n"
                 "WorldOptions::network.jitter is -0.5; it is 0 (none) or more, and finite");
  }
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(require_valid({.bytes_per_second = kNan}), std::invalid_argument);
  EXPECT_THROW(require_valid({.jitter = kNan}), std::invalid_argument);
  EXPECT_NO_THROW(require_valid({.latency = std::chrono::nanoseconds(0)}));
}

}  // namespace
}  // namespace rehearse::sim
