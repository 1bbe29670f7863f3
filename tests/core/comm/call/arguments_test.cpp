// SPDX-License-Identifier: BSD-3-Clause
// Contract: arguments that are wrong on one rank fail there, before any other rank takes part. If c10d's own back ends
// make the same check, the error has their text. The refused call gets no sequence number, so the rank may go on.
#include <ostream>

#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using testing::HasSubstr;
using Lists = std::vector<std::vector<at::Tensor>>;
using Tensors = std::vector<at::Tensor>;

struct BadCall {
  const char* name;
  const char* text;
  std::function<void(const ProcessGroup& group)> call;  // on rank 0 of 2
};

void PrintTo(const BadCall& example, std::ostream* out) { *out << example.name; }

Tensors ones(int length) { return Tensors(static_cast<std::size_t>(length), at::ones({2})); }

std::vector<BadCall> bad_calls() {
  return {
      {"TwoTensors", "allreduce: requires a single-element tensor list",
       [](const ProcessGroup& group) {
         auto tensors = ones(2);
         group->allreduce(tensors);
       }},
      {"NoTensor", "allreduce: requires non-empty tensor list",
       [](const ProcessGroup& group) {
         Tensors tensors;
         group->getDefaultBackend()->allreduce(tensors);
       }},
      {"SparseTensor", "reduce: only supports dense tensors",
       [](const ProcessGroup& group) {
         Tensors tensors{at::eye(2).to_sparse()};
         group->getDefaultBackend()->reduce(tensors);
       }},
      {"SparseCsrTensor", "allreduce: only supports dense tensors",
       [](const ProcessGroup& group) {
         Tensors tensors{at::eye(2).to_sparse_csr()};
         group->getDefaultBackend()->allreduce(tensors);
       }},
      {"RootOutOfRange", "broadcast: invalid root rank: 2",
       [](const ProcessGroup& group) { broadcast(group, at::ones({1}), 2); }},
      {"NegativeRoot", "reduce: invalid root rank: -1",
       [](const ProcessGroup& group) {
         auto tensors = ones(1);
         c10d::ReduceOptions options;
         options.rootRank = -1;
         group->reduce(tensors, options);
       }},
      {"RootTensor", "broadcast: invalid root tensor: 1",
       [](const ProcessGroup& group) {
         auto tensors = ones(1);
         c10d::BroadcastOptions options;
         options.rootTensor = 1;
         group->broadcast(tensors, options);
       }},
      {"AllgatherListLength", "allgather: invalid output tensor list at index 0 (expected length 2, got 3)",
       [](const ProcessGroup& group) {
         auto inputs = ones(1);
         Lists outputs{ones(3)};
         group->allgather(outputs, inputs);
       }},
      {"AllgatherDtype", "allgather: invalid tensor type at index 1 (expected float32 on cpu, got float64 on cpu)",
       [](const ProcessGroup& group) {
         auto inputs = ones(1);
         Lists outputs{{at::ones({2}), at::ones({2}, at::kDouble)}};
         group->allgather(outputs, inputs);
       }},
      {"AllgatherOwnSize", "allgather: invalid tensor size at index 0 (expected [2], got [3])",
       [](const ProcessGroup& group) {
         auto inputs = ones(1);
         Lists outputs{{at::ones({3}), at::ones({2})}};
         group->allgather(outputs, inputs);
       }},
      {"AllgatherBaseSize", "must be equal to world_size times input tensor size (3 elements, not 2 x 2)",
       [](const ProcessGroup& group) {
         auto output = at::ones({3}), input = at::ones({2});
         group->_allgather_base(output, input);
       }},
      {"AllgatherBaseDtype", "output tensor must have the same type as input tensor",
       [](const ProcessGroup& group) {
         auto output = at::ones({4}, at::kDouble), input = at::ones({2});
         group->_allgather_base(output, input);
       }},
      {"GatherNoOutputs", "gather: requires a single-element output list containing a list with 2 tensors",
       [](const ProcessGroup& group) {
         auto inputs = ones(1);
         Lists outputs;
         group->gather(outputs, inputs);
       }},
      {"GatherOutputsOnNonRoot", "gather: requires empty output on non-root",
       [](const ProcessGroup& group) {
         auto inputs = ones(1);
         Lists outputs{ones(2)};
         c10d::GatherOptions options;
         options.rootRank = 1;
         group->gather(outputs, inputs, options);
       }},
      {"ScatterInputsOnNonRoot", "scatter: requires empty input on non-root",
       [](const ProcessGroup& group) {
         auto outputs = ones(1);
         Lists inputs{ones(2)};
         c10d::ScatterOptions options;
         options.rootRank = 1;
         group->scatter(outputs, inputs, options);
       }},
      {"ScatterSizes", "scatter: invalid tensor size at index 1 (expected [2], got [3])",
       [](const ProcessGroup& group) {
         auto outputs = ones(1);
         Lists inputs{{at::ones({2}), at::ones({3})}};
         group->scatter(outputs, inputs);
       }},
      {"ReduceScatterBaseSize", "must be the same size as output size times world size (2 elements, not 2 x 2)",
       [](const ProcessGroup& group) {
         auto output = at::ones({2}), input = at::ones({2});
         group->_reduce_scatter_base(output, input);
       }},
      {"AlltoallUnequal", "does not divide equally across group size (3 rows for 2 ranks; 2 or 4 fit, or splits)",
       [](const ProcessGroup& group) { alltoall(group, at::ones({3}), at::ones({3})); }},
      {"AlltoallSplitCount", "alltoall_base: Number of tensor splits not equal to group size",
       [](const ProcessGroup& group) { alltoall(group, at::ones({3}), at::ones({3}), {3}, {1, 2}); }},
      {"AlltoallSplitSum", "Split sizes doesn't match total dim 0 size ([1, 1] are 2 of 3 rows)",
       [](const ProcessGroup& group) { alltoall(group, at::ones({3}), at::ones({3}), {1, 2}, {1, 1}); }},
      {"AlltoallToItself", "alltoall_base: this rank sends 2 elements to itself but expects 1",
       [](const ProcessGroup& group) { alltoall(group, at::ones({3}), at::ones({3}), {1, 2}, {2, 1}); }},
      {"AlltoallListLength", "alltoall: invalid input tensor list (expected length 2, got 1)",
       [](const ProcessGroup& group) {
         auto outputs = ones(2), inputs = ones(1);
         group->alltoall(outputs, inputs);
       }},
      {"SendToNobody", "send: invalid destination rank: 2",
       [](const ProcessGroup& group) { send(group, at::ones({1}), 2); }},
      {"SendToItself", "send: invalid destination rank: 0 is the rank of the calling process itself",
       [](const ProcessGroup& group) { send(group, at::ones({1}), 0); }},
      {"NegativeTag", "recv: Tag must be nonnegative",
       [](const ProcessGroup& group) { recv(group, at::ones({1}), 1, -1); }},
  };
}

class BadArguments : public CommTest, public testing::WithParamInterface<BadCall> {};

TEST_P(BadArguments, FailTheCallAndNothingElse) { expect_refused(GetParam().call, GetParam().text); }

TEST_F(CommTest, FewerRowsThanRanks_SayWhatFits) {
  expect_refused([](const ProcessGroup& group) { alltoall(group, at::ones({1}), at::ones({1})); },
                 "(1 rows for 2 ranks; 2 fit, or splits)");
}

INSTANTIATE_TEST_SUITE_P(Calls, BadArguments, testing::ValuesIn(bad_calls()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(CommTest, GroupOfAnotherRank_IsRefused) {
  ProcessGroup of_rank_0;
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    if (rank == 0) of_rank_0 = group;
    exec::this_rank::yield();
    if (rank == 1) allreduce(of_rank_0, at::ones({1}));
  });
  EXPECT_EQ(failure(outcome), "rank 1 used the process group \"world\" of rank 0: each rank must use its own");
}

}  // namespace
}  // namespace rehearse::comm
