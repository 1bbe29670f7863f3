// SPDX-License-Identifier: BSD-3-Clause
// Contract: tensors whose memory Gloo or NCCL would read at the wrong places are refused before any rank waits. Layouts
// that Gloo and NCCL read correctly are accepted; tests/parity checks the results of each call with such layouts.
#include <ostream>
#include <utility>

#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;

at::Tensor gappy() { return at::ones({4, 5}).narrow(1, 0, 2); }
at::Tensor overlapping() { return at::ones({4, 1}).expand({4, 2}); }
at::Tensor turned() { return at::ones({2, 4}).t(); }
at::Tensor plain() { return at::ones({4, 2}); }
at::Tensor of_channels(at::MemoryFormat format) { return at::ones({4, 3, 2, 2}).contiguous(format); }

void reduce(const ProcessGroup& group, const at::Tensor& tensor) {
  Tensors tensors{tensor};
  group->reduce(tensors);
}
void scatter(const ProcessGroup& group, const at::Tensor& output, const at::Tensor& input) {
  Tensors outputs{output};
  Lists inputs{{input, input}};
  group->scatter(outputs, inputs);
}
void reduce_scatter(const ProcessGroup& group, const at::Tensor& output, const at::Tensor& input) {
  Tensors outputs{output};
  Lists inputs{{input, input}};
  group->reduce_scatter(outputs, inputs);
}
void alltoall_of_lists(const ProcessGroup& group, const at::Tensor& output, const at::Tensor& input) {
  Tensors outputs{output, output}, inputs{input, input};
  group->alltoall(outputs, inputs);
}

struct BadLayout {
  const char* name;
  const char* text;
  std::function<void(const ProcessGroup& group)> call;  // on rank 0 of 2
};

void PrintTo(const BadLayout& example, std::ostream* out) { *out << example.name; }

constexpr const char* kGaps =
    "Tensors must be contiguous, or dense in another order of their dimensions; this one has sizes [4, 2] and strides "
    "[5, 1]";

std::vector<BadLayout> bad_layouts() {
  using Group = const ProcessGroup&;
  return {
      {"AllreduceOfGaps", kGaps, [](Group group) { allreduce(group, gappy()); }},
      {"AllreduceOfOneElementForAll", "this one has sizes [4, 2] and strides [1, 0]",
       [](Group group) { allreduce(group, overlapping()); }},
      {"BroadcastOfGaps", kGaps, [](Group group) { broadcast(group, gappy()); }},
      {"ReduceOfGaps", kGaps, [](Group group) { reduce(group, gappy()); }},
      {"ScatterIntoGaps", kGaps, [](Group group) { scatter(group, gappy(), plain()); }},
      {"ScatterOfGaps", kGaps, [](Group group) { scatter(group, plain(), gappy()); }},
      {"ScatterIntoAnotherOrder",
       "scatter: invalid tensor strides at index 0 (expected sizes [4, 2] and strides [1, 4], got sizes [4, 2] and "
       "strides [2, 1])",
       [](Group group) { scatter(group, turned(), plain()); }},
      {"ReduceScatterIntoGaps", kGaps, [](Group group) { reduce_scatter(group, gappy(), plain()); }},
      {"ReduceScatterIntoAnotherOrder", "reduce_scatter: invalid tensor strides at index 0",
       [](Group group) { reduce_scatter(group, turned(), plain()); }},
      {"ReduceScatterOfGapsIntoAnotherOrder", "reduce_scatter: invalid tensor strides at index 0",
       [](Group group) { reduce_scatter(group, turned(), gappy()); }},
      {"AlltoallOfGaps", "alltoall_base: Tensors must be contiguous; this one has sizes [4, 2] and strides [5, 1]",
       [](Group group) { alltoall(group, plain(), gappy()); }},
      {"AlltoallIntoGaps", "alltoall_base: Tensors must be contiguous; this one has sizes [4, 2] and strides [5, 1]",
       [](Group group) { alltoall(group, gappy(), plain()); }},
      {"AlltoallOfColumns", "alltoall_base: Tensors must be contiguous; this one has sizes [4, 2] and strides [1, 4]",
       [](Group group) { alltoall(group, turned(), turned()); }},
      {"AlltoallIntoAnotherFormat", "alltoall_base: invalid tensor strides at index 0",
       [](Group group) {
         alltoall(group, of_channels(at::MemoryFormat::Contiguous), of_channels(at::MemoryFormat::ChannelsLast));
       }},
      {"AlltoallOfListsWithGaps", "alltoall: Tensors must be contiguous; this one has sizes [4, 2] and strides [5, 1]",
       [](Group group) { alltoall_of_lists(group, gappy(), plain()); }},
      {"SendOfGaps", "send: input tensor has to be contiguous; this one has sizes [4, 2] and strides [5, 1]",
       [](Group group) { send(group, gappy(), 1); }},
      {"SendOfColumns", "send: input tensor has to be contiguous; this one has sizes [4, 2] and strides [1, 4]",
       [](Group group) { send(group, turned(), 1); }},
      {"ReceiveIntoColumns", "recv: input tensor has to be contiguous; this one has sizes [4, 2] and strides [1, 4]",
       [](Group group) { recv(group, turned(), 1); }},
      {"ReceiveFromAnyIntoGaps", "recv_any_source: input tensor has to be contiguous",
       [](Group group) { recv_any(group, gappy()); }},
  };
}

class BadLayouts : public CommTest, public testing::WithParamInterface<BadLayout> {};

TEST_P(BadLayouts, AreRefusedWithSizesAndStrides) { expect_refused(GetParam().call, GetParam().text); }

INSTANTIATE_TEST_SUITE_P(Calls, BadLayouts, testing::ValuesIn(bad_layouts()),
                         [](const auto& layout) { return std::string(layout.param.name); });

class Layouts : public CommTest {
 protected:
  void expect_agreement(const Body& call) {
    for (const int ranks : {2, 3, 8}) {
      const auto outcome = run(ranks, call);
      EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome) << ", " << ranks << " ranks";
      EXPECT_TRUE(mismatches.empty());
    }
  }
};

// The strides of size-1 dimensions, and of tensors without elements, do not matter.
TEST_F(Layouts, StridesThatSayNothing_AgreeWithAll) {
  expect_agreement([](int rank, const ProcessGroup& group) {
    const auto odd = rank % 2 == 1;
    allreduce(group, odd ? at::ones({4, 1}).as_strided({4, 1}, {1, 9}) : at::ones({4, 1}))->wait();
    allreduce(group, odd ? at::ones({0, 5}).t() : at::ones({5, 0}))->wait();
    allreduce(group, odd ? at::ones({3, 2, 1}).as_strided({2, 3, 1}, {1, 2, 7}) : at::ones({3, 2, 1}).transpose(0, 1))
        ->wait();
    broadcast(group, odd ? at::ones({}).as_strided({}, {}) : at::ones({}))->wait();
  });
}

// Gloo copies the tensors of these calls to or from contiguous memory, so each rank may use any layout.
TEST_F(Layouts, CallsThatCopy_TakeAnyLayoutOnAnyRank) {
  expect_agreement([](int rank, const ProcessGroup& group) {
    const auto own = [rank] { return rank % 3 == 0 ? gappy() : rank % 3 == 1 ? turned() : plain(); };
    const int n = group->getSize();
    Tensors inputs{own()}, all(static_cast<std::size_t>(n), own());
    Lists outputs{all}, none;
    group->allgather(outputs, inputs)->wait();
    group->allreduce_coalesced(inputs)->wait();
    group->gather(rank == 0 ? outputs : none, inputs)->wait();
    auto whole = at::ones({4 * n, 5}).narrow(1, 0, 2), part = own();
    group->_allgather_base(whole, part)->wait();
  });
}

TEST_F(Layouts, ChannelsLastOnAllRanks_Agrees) {
  expect_agreement([](int, const ProcessGroup& group) {
    const auto tensor = of_channels(at::MemoryFormat::ChannelsLast);
    allreduce(group, tensor)->wait();
    broadcast(group, tensor)->wait();
    const auto n = group->getSize();
    const auto rows = at::ones({4 * n, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
    alltoall(group, rows.clone(), rows)->wait();
    // All ranks send to rank 0 only.
    std::vector<std::int64_t> to(static_cast<std::size_t>(n), 0), from(static_cast<std::size_t>(n), 0);
    to[0] = 4;
    if (group->getRank() == 0) from.assign(static_cast<std::size_t>(n), 4);
    const auto taken = group->getRank() == 0 ? rows : rows.narrow(0, 0, 0);
    alltoall(group, taken, tensor, from, to)->wait();
  });
}

// In one of several coalesced calls, one rank has another layout than all other ranks.
TEST_F(Layouts, OneRankInAnotherOrder_IsTheOddOneOut) {
  run(8, [](int rank, const ProcessGroup& group) {
    group->startCoalescing(at::kCPU);
    allreduce(group, at::ones({2}));
    allreduce(group, rank == 5 ? turned() : plain());
    group->endCoalescing(at::kCPU)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].second.rank, 5);
  EXPECT_THAT(mismatches[0].first.alike, testing::ElementsAre(0, 1, 2, 3, 4, 6, 7));
  EXPECT_EQ(mismatches[0].fields, (std::vector<Mismatch::Field>{{"strides of operation 2", "[2, 1]", "[1, 4]"}}));
}

}  // namespace
}  // namespace rehearse::comm
