// SPDX-License-Identifier: BSD-3-Clause
// Contract: operations that move data without computing are right for each dtype listed below, for sizes that are equal
// on all ranks, and for sizes that differ between ranks. Inputs stay unchanged.
#include "bit_equal.h"
#include "group_fixture.h"

namespace rehearse::fakes::testing {
namespace {

using c10d::OpType;
using rehearse::test::BitEqual;

class Copy : public FabricTest, public ::testing::WithParamInterface<at::ScalarType> {
 protected:
  at::Tensor input(int rank, std::int64_t size) const { return random_tensor({size}, GetParam(), rank, true); }
  at::Tensor output(std::int64_t size) const { return at::zeros({size}, GetParam()); }

  template <class Check>
  void for_all(const Check& check) {
    for (const int ranks : kRanks) {
      for (const auto size : kSizes) {
        SCOPED_TRACE(::testing::Message() << ranks << " ranks, size " << size);
        check(ranks, size);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_P(Copy, Broadcast) {
  for_all([&](int ranks, std::int64_t size) {
    for (const int root : {0, ranks - 1}) {
      Calls calls(OpType::BROADCAST, ranks);
      for (int r = 0; r < ranks; ++r) {
        calls[r].root = root;
        calls[r].inputs = calls[r].outputs = {input(r, size)};
      }
      run(calls);
      for (int r = 0; r < ranks; ++r) EXPECT_THAT(calls[r].outputs[0], BitEqual(input(root, size)));
    }
  });
}

TEST_P(Copy, AllGather_SizesDifferByRank) {
  for_all([&](int ranks, std::int64_t size) {
    const auto size_of = [&](int r) { return r % 3 == 1 ? 0 : size / (r + 1); };
    Calls calls(OpType::ALLGATHER, ranks);
    for (int r = 0; r < ranks; ++r) {
      calls[r].inputs = {input(r, size_of(r))};
      for (int i = 0; i < ranks; ++i) calls[r].outputs.push_back(output(size_of(i)));
    }
    run(calls);
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < ranks; ++i) EXPECT_THAT(calls[r].outputs[i], BitEqual(input(i, size_of(i))));
      EXPECT_THAT(calls[r].inputs[0], BitEqual(input(r, size_of(r))));
    }
  });
}

TEST_P(Copy, AllGatherBase) {
  for_all([&](int ranks, std::int64_t size) {
    Calls calls(OpType::_ALLGATHER_BASE, ranks);
    for (int r = 0; r < ranks; ++r) {
      calls[r].inputs = {input(r, size)};
      calls[r].outputs = {output(ranks * size)};
    }
    run(calls);
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < ranks; ++i) {
        EXPECT_THAT(calls[r].outputs[0].narrow(0, i * size, size), BitEqual(input(i, size)));
      }
      EXPECT_THAT(calls[r].inputs[0], BitEqual(input(r, size)));
    }
  });
}

TEST_P(Copy, GatherAndScatter_SizesDifferByRank) {
  for_all([&](int ranks, std::int64_t size) {
    const auto size_of = [&](int r) { return size / (r + 1); };
    const int root = ranks / 2;
    Calls gather(OpType::GATHER, ranks);
    Calls scatter(OpType::SCATTER, ranks);
    for (int r = 0; r < ranks; ++r) {
      gather[r].root = scatter[r].root = root;
      gather[r].inputs = {input(r, size_of(r))};
      gather[root].outputs.push_back(output(size_of(r)));
      scatter[root].inputs.push_back(input(r + 50, size_of(r)));
      scatter[r].outputs = {output(size_of(r))};
    }
    run(gather);
    run(scatter);
    for (int r = 0; r < ranks; ++r) {
      EXPECT_THAT(gather[root].outputs[r], BitEqual(input(r, size_of(r))));
      EXPECT_THAT(gather[r].inputs[0], BitEqual(input(r, size_of(r))));
      EXPECT_THAT(scatter[r].outputs[0], BitEqual(input(r + 50, size_of(r))));
      EXPECT_THAT(scatter[root].inputs[r], BitEqual(input(r + 50, size_of(r))));
    }
  });
}

TEST_P(Copy, AllToAll_SizesDifferByPair) {
  for_all([&](int ranks, std::int64_t size) {
    const auto size_of = [&](int from, int to) { return (from + to) % 4 == 3 ? 0 : size / (from + 2 * to + 1); };
    Calls calls(OpType::ALLTOALL, ranks);
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < ranks; ++i) {
        calls[r].inputs.push_back(input(r * 10 + i, size_of(r, i)));
        calls[r].outputs.push_back(output(size_of(i, r)));
      }
    }
    run(calls);
    for (int r = 0; r < ranks; ++r) {
      for (int i = 0; i < ranks; ++i) {
        EXPECT_THAT(calls[r].outputs[i], BitEqual(input(i * 10 + r, size_of(i, r))));
        EXPECT_THAT(calls[r].inputs[i], BitEqual(input(r * 10 + i, size_of(r, i))));
      }
    }
  });
}

TEST_P(Copy, SendToReceive) {
  for (const auto size : kSizes) {
    Calls pair(OpType::SEND, 2);
    pair[1].type = OpType::RECV;
    pair[0].inputs = {input(0, size)};
    pair[1].outputs = {output(size)};
    run(pair);
    EXPECT_THAT(pair[1].outputs[0], BitEqual(input(0, size)));
    EXPECT_THAT(pair[0].inputs[0], BitEqual(input(0, size)));
  }
}

TEST_F(FabricTest, Barrier_Completes) {
  Calls calls(OpType::BARRIER, 5);
  run(calls);
}

INSTANTIATE_TEST_SUITE_P(Dtype, Copy,
                         ::testing::Values(at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn,
                                           at::kFloat8_e5m2, at::kChar, at::kByte, at::kShort, at::kUInt16, at::kInt,
                                           at::kLong, at::kBool, at::kComplexFloat, at::kComplexDouble),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

}  // namespace
}  // namespace rehearse::fakes::testing
