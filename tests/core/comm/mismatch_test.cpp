// SPDX-License-Identifier: BSD-3-Clause
// Contract: two ranks that call different things at the same place are told apart before any data moves, with the
// fields that differ and nothing else; most of these are silent or hang with c10d's own back ends. Calls that fit are
// left alone.
#include <ostream>

#include "test_world.h"

namespace rehearse::comm {
namespace {

using c10d::ReduceOp;
using testing::_;
using testing::ElementsAre;
using Call = std::function<void(const ProcessGroup& group)>;
using Fields = std::vector<Mismatch::Field>;
using Lists = std::vector<std::vector<at::Tensor>>;

// Rank 0 makes the first call and is there first.
struct Case {
  const char* name;
  Call first, second;
  std::string first_text, second_text;
  Fields fields;
};

void PrintTo(const Case& example, std::ostream* out) { *out << example.name; }

Call call_allreduce(at::Tensor tensor, ReduceOp op = ReduceOp::SUM) {
  return [=](const ProcessGroup& group) { allreduce(group, tensor, op)->wait(); };
}
// c10d has no way to a back end for this device.
Call call_allreduce_on_meta() {
  return [](const ProcessGroup& group) {
    std::vector<at::Tensor> tensors{at::empty({2}, at::kMeta)};
    group->getDefaultBackend()->allreduce(tensors, {})->wait();
  };
}
Call call_broadcast(at::Tensor tensor, int root) {
  return [=](const ProcessGroup& group) { broadcast(group, tensor, root)->wait(); };
}
Call call_barrier() {
  return [](const ProcessGroup& group) { group->barrier()->wait(); };
}
Call call_allgather(std::int64_t own, std::int64_t other) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> inputs{at::ones({own})};
    Lists outputs{{at::ones({own}), at::ones({other})}};
    if (group->getRank() == 1) std::swap(outputs[0][0], outputs[0][1]);
    group->allgather(outputs, inputs)->wait();
  };
}
Call call_gather(std::int64_t size, int root) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> inputs{at::ones({size})};
    Lists outputs;
    if (group->getRank() == root) outputs = {{at::ones({size}), at::ones({size})}};
    c10d::GatherOptions options;
    options.rootRank = root;
    group->gather(outputs, inputs, options)->wait();
  };
}
Call call_scatter(std::int64_t size, int root) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> outputs{at::ones({size})};
    Lists inputs;
    if (group->getRank() == root) inputs = {{at::ones({size}), at::ones({size})}};
    c10d::ScatterOptions options;
    options.rootRank = root;
    group->scatter(outputs, inputs, options)->wait();
  };
}
Call call_reduce_scatter(std::int64_t of_rank_0, std::int64_t of_rank_1) {
  return [=](const ProcessGroup& group) {
    std::vector<at::Tensor> outputs{at::ones({group->getRank() == 0 ? of_rank_0 : of_rank_1})};
    Lists inputs{{at::ones({of_rank_0}), at::ones({of_rank_1})}};
    group->reduce_scatter(outputs, inputs)->wait();
  };
}
Call call_alltoall(std::vector<std::int64_t> output_splits, std::vector<std::int64_t> input_splits) {
  return [=](const ProcessGroup& group) {
    const auto rows = [](const std::vector<std::int64_t>& splits) { return splits.empty() ? 4 : splits[0] + splits[1]; };
    alltoall(group, at::ones({rows(output_splits)}), at::ones({rows(input_splits)}), output_splits, input_splits)->wait();
  };
}
Call call_monitored_barrier() {
  return [](const ProcessGroup& group) { group->monitoredBarrier({}); };
}

at::Tensor f32(std::vector<std::int64_t> sizes) { return at::ones(sizes); }

std::vector<Case> cases() {
  return {
      {"Op", call_allreduce(f32({2})), call_broadcast(f32({2}), 0), "allreduce(sum, float32[2], cpu)",
       "broadcast(root=0, float32[2], cpu)", {{"op", "allreduce", "broadcast"}}},
      {"OpAndMore", call_allreduce(f32({2})), call_broadcast(at::ones({3}, at::kLong), 0),
       "allreduce(sum, float32[2], cpu)", "broadcast(root=0, int64[3], cpu)",
       {{"op", "allreduce", "broadcast"}, {"shape", "[2]", "[3]"}, {"dtype", "float32", "int64"}}},
      {"OpWithoutTensors", call_barrier(), call_allreduce(f32({2})), "barrier()", "allreduce(sum, float32[2], cpu)",
       {{"op", "barrier", "allreduce"}}},
      {"MonitoredBarrier", call_monitored_barrier(), call_barrier(), "monitored_barrier()", "barrier()",
       {{"op", "monitored_barrier", "barrier"}}},
      {"Shape", call_allreduce(f32({2})), call_allreduce(f32({3})), "allreduce(sum, float32[2], cpu)",
       "allreduce(sum, float32[3], cpu)", {{"shape", "[2]", "[3]"}}},
      {"ShapeOfEqualCount", call_allreduce(f32({2, 3})), call_allreduce(f32({3, 2})),
       "allreduce(sum, float32[2, 3], cpu)", "allreduce(sum, float32[3, 2], cpu)", {{"shape", "[2, 3]", "[3, 2]"}}},
      {"Dtype", call_allreduce(f32({2})), call_allreduce(at::ones({2}, at::kDouble)),
       "allreduce(sum, float32[2], cpu)", "allreduce(sum, float64[2], cpu)", {{"dtype", "float32", "float64"}}},
      {"Device", call_allreduce(f32({2})), call_allreduce_on_meta(),
       "allreduce(sum, float32[2], cpu)", "allreduce(sum, float32[2], meta)", {{"device", "cpu", "meta"}}},
      {"SparseAndDense", call_allreduce(f32({2}).to_sparse()), call_allreduce(f32({2})),
       "allreduce_sparse(sum, float32[2] sparse_dim=1, cpu)", "allreduce(sum, float32[2], cpu)",
       {{"op", "allreduce_sparse", "allreduce"}}},
      {"SparseDim", call_allreduce(f32({2, 3}).to_sparse(1)), call_allreduce(f32({2, 3}).to_sparse(2)),
       "allreduce_sparse(sum, float32[2, 3] sparse_dim=1, cpu)", "allreduce_sparse(sum, float32[2, 3] sparse_dim=2, cpu)",
       {{"sparse_dim", "1", "2"}}},
      {"SparseShape", call_allreduce(f32({2}).to_sparse()), call_allreduce(f32({3}).to_sparse()),
       "allreduce_sparse(sum, float32[2] sparse_dim=1, cpu)", "allreduce_sparse(sum, float32[3] sparse_dim=1, cpu)",
       {{"shape", "[2]", "[3]"}}},
      {"Root", call_broadcast(f32({2}), 0), call_broadcast(f32({2}), 1), "broadcast(root=0, float32[2], cpu)",
       "broadcast(root=1, float32[2], cpu)", {{"root", "0", "1"}}},
      {"ReduceOp", call_allreduce(f32({2})), call_allreduce(f32({2}), ReduceOp::MAX),
       "allreduce(sum, float32[2], cpu)", "allreduce(max, float32[2], cpu)", {{"reduce_op", "sum", "max"}}},
      {"Factor", call_allreduce(f32({2}), c10d::makeNCCLPreMulSum(0.5)),
       call_allreduce(f32({2}), c10d::makeNCCLPreMulSum(at::full({1}, 0.25))),
       "allreduce(premul_sum 0.5, float32[2], cpu)", "allreduce(premul_sum 0.25, float32[2], cpu)",
       {{"factor", "0.5", "0.25"}}},
      {"AllgatherSizes", call_allgather(2, 3), call_allgather(4, 2), "allgather(float32 ([2], [3]), cpu)",
       "allgather(float32 ([2], [4]), cpu)", {{"shape", "([2], [3])", "([2], [4])"}}},
      {"GatherSize", call_gather(2, 0), call_gather(3, 0), "gather(root=0, float32[2], cpu)",
       "gather(root=0, float32[3], cpu)", {{"shape", "[2]", "[3]"}}},
      {"GatherRoot", call_gather(2, 0), call_gather(2, 1), "gather(root=0, float32[2], cpu)",
       "gather(root=1, float32[2], cpu)", {{"root", "0", "1"}}},
      {"ScatterSize", call_scatter(2, 0), call_scatter(3, 0), "scatter(root=0, float32[2], cpu)",
       "scatter(root=0, float32[3], cpu)", {{"shape", "[2]", "[3]"}}},
      {"ReduceScatterSizes", call_reduce_scatter(2, 2), call_reduce_scatter(2, 3),
       "reduce_scatter(sum, float32 2 x [2], cpu)", "reduce_scatter(sum, float32 ([2], [3]), cpu)",
       {{"shape", "2 x [2]", "([2], [3])"}}},
      {"SplitsUneven", call_alltoall({1, 3}, {1, 2}), call_alltoall({1, 3}, {3, 3}),
       "alltoall_base(float32[3], cpu, send [1, 2], receive [1, 3])",
       "alltoall_base(float32[6], cpu, send [3, 3], receive [1, 3])",
       {{"splits of rank 0 to rank 1", "sends 2", "expects 1"}}},
      {"SplitsEvenAndUneven", call_alltoall({}, {}), call_alltoall({2, 2}, {1, 2}),
       "alltoall_base(float32[4], cpu, send [2, 2], receive [2, 2])",
       "alltoall_base(float32[3], cpu, send [1, 2], receive [2, 2])",
       {{"splits of rank 1 to rank 0", "expects 2", "sends 1"}}},
      {"SplitsOfDifferentTotal", call_alltoall({}, {}), call_alltoall({3, 3}, {3, 3}),
       "alltoall_base(float32[4], cpu, send [2, 2], receive [2, 2])",
       "alltoall_base(float32[6], cpu, send [3, 3], receive [3, 3])",
       {{"splits of rank 1 to rank 0", "expects 2", "sends 3"}}},
  };
}

class Mismatches : public CommTest, public testing::WithParamInterface<Case> {};

TEST_P(Mismatches, NameBothCallsAndTheFieldsThatDiffer) {
  const auto& expected = GetParam();
  EXPECT_CALL(fabric, launch).Times(0);
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    (rank == 0 ? expected.first : expected.second)(group);
    ADD_FAILURE() << "rank " << rank << " went on";
  });
  EXPECT_EQ(outcome.ending, exec::Ending::stopped);
  ASSERT_EQ(mismatches.size(), 1u);
  const auto& mismatch = mismatches.front();
  EXPECT_EQ(mismatch.kind, Mismatch::Kind::collective);
  EXPECT_EQ(mismatch.group, "world");
  EXPECT_EQ(mismatch.sequence, 1u);
  EXPECT_EQ(mismatch.first.rank, 0);
  EXPECT_EQ(mismatch.second.rank, 1);
  EXPECT_EQ(mismatch.first.fingerprint, expected.first_text);
  EXPECT_EQ(mismatch.second.fingerprint, expected.second_text);
  EXPECT_THAT(mismatch.first.alike, ElementsAre(0));
  EXPECT_THAT(mismatch.second.alike, ElementsAre(1));
  EXPECT_EQ(mismatch.fields, expected.fields) << to_string(mismatch);
  EXPECT_EQ(outcome.stop_reason, to_string(mismatch));
  EXPECT_EQ(failure(outcome), to_string(mismatch));
}

INSTANTIATE_TEST_SUITE_P(Collectives, Mismatches, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(CommTest, Mismatch_ThrowsInTheRankThatCameSecondAndStopsTheOthers) {
  const auto outcome = run(3, [&](int rank, const ProcessGroup& group) {
    if (rank == 2) {
      try {
        allreduce(group, at::ones({2}), ReduceOp::MAX);
        ADD_FAILURE();
      } catch (const MismatchError& error) {
        EXPECT_EQ(error.group(), "world");
        EXPECT_EQ(error.sequence(), 1u);
        EXPECT_THAT(error.ranks(), ElementsAre(0, 2));
        EXPECT_STREQ(error.what(),
                     "rank 2 called allreduce(max, float32[2], cpu) where ranks 0-1 called allreduce(sum, float32[2], "
                     "cpu) as #1 of group \"world\": reduce_op max, not sum");
        throw;
      }
    }
    EXPECT_THROW(allreduce(group, at::ones({2}))->wait(), RankAborted);
  });
  EXPECT_THAT(mismatches.at(0).first.alike, ElementsAre(0, 1));
  EXPECT_EQ(outcome.ending, exec::Ending::stopped);
}

// The swap that nothing but a name can tell: same op, same shape, other order.
TEST_F(CommTest, SwappedCallsOfEqualShape_AreToldApartByLabels) {
  const std::string names[] = {"fc1.weight", "fc2.weight"};
  run(2, [&](int rank, const ProcessGroup& group) {
    for (const int i : {0, 1}) {
      communicators->set_label(rank, &names[rank == 0 ? i : 1 - i]);
      allreduce(group, at::ones({2}))->wait();
    }
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].first.fingerprint, "allreduce(sum, float32[2], cpu) label=\"fc1.weight\"");
  EXPECT_EQ(mismatches[0].fields, (Fields{{"label", "\"fc1.weight\"", "\"fc2.weight\""}}));
}

// A tensor may go by a name of its own (a bucket of DDP): other names do not fit, no name does.
TEST_F(CommTest, NamedPayloads_FitTheirLikeAndTheNameless) {
  const auto meet = [&](const char* name_of_rank_1) {
    mismatches.clear();
    return run(3, [&](int rank, const ProcessGroup& group) {
      const auto tensor = at::ones({2});
      if (rank == 0) communicators->name_payload(rank, tensor, "bucket 0: weight");
      if (rank == 1) communicators->name_payload(rank, tensor, name_of_rank_1);
      allreduce(group, tensor)->wait();
      communicators->forget_payload(rank, tensor.unsafeGetTensorImpl());
      allreduce(group, rank == 0 ? tensor : at::ones({2}))->wait();
    });
  };
  EXPECT_EQ(meet("bucket 0: weight").ending, exec::Ending::all_returned);
  EXPECT_EQ(events->title(events->of_rank(1)[0]), "allreduce #1 of \"bucket 0: weight\" on group \"world\"");
  EXPECT_EQ(events->title(events->of_rank(2)[0]), "allreduce #1 on group \"world\"");
  EXPECT_EQ(events->title(events->of_rank(0)[1]), "allreduce #2 on group \"world\"");
  EXPECT_EQ(meet("bucket 0: bias").ending, exec::Ending::stopped);
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (Fields{{"label", "\"bucket 0: weight\"", "\"bucket 0: bias\""}}));
}

// Names too long to be shown: reports cut them in the middle, and show where they begin to differ.
TEST_F(CommTest, LongNames_AreCutButStillToldApart) {
  const std::string common(200, 'a');
  run(2, [&](int rank, const ProcessGroup& group) {
    const auto tensor = at::ones({2});
    communicators->name_payload(rank, tensor, common + (rank == 0 ? "x" : "y") + common);
    allreduce(group, tensor)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  const std::string head(32, 'a'), tail(16, 'a');
  EXPECT_EQ(mismatches[0].first.fingerprint, "allreduce(sum, float32[2], cpu) label=\"" + head + " ... " + tail + "\"");
  EXPECT_EQ(mismatches[0].fields, (Fields{{"label", "\"... x" + head.substr(1) + " ... " + tail + "\"",
                                           "\"... y" + head.substr(1) + " ... " + tail + "\""}}));
}

TEST_F(CommTest, LabelOnOneRankOnly_IsADifference) {
  const std::string name = "loss";
  run(2, [&](int rank, const ProcessGroup& group) {
    if (rank == 1) communicators->set_label(rank, &name);
    allreduce(group, at::ones({2}))->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (Fields{{"label", "none", "\"loss\""}}));
}

TEST_F(CommTest, EqualLabelsAtDifferentAddresses_Agree) {
  const std::string names[] = {"loss", "loss"};
  const auto outcome = run(2, [&](int rank, const ProcessGroup& group) {
    communicators->set_label(rank, &names[rank]);
    allreduce(group, at::ones({2}))->wait();
    communicators->set_label(rank, nullptr);
    allreduce(group, at::ones({2}))->wait();
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned) << failure(outcome);
}

// A call that only one rank makes shifts all that follow: the first place where they differ is named.
TEST_F(CommTest, ExtraCall_IsNamedAtTheFirstPlaceThatDiffers) {
  run(3, [](int rank, const ProcessGroup& group) {
    allreduce(group, at::ones({8}))->wait();
    if (rank == 1) group->barrier()->wait();
    broadcast(group, at::ones({2}))->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].sequence, 2u);
  EXPECT_EQ(mismatches[0].fields.at(0).name, "op");
}

// The last call of one rank: nobody else comes, so it is a wait for ranks that have ended, not a mismatch.
TEST_F(CommTest, ExtraCallAtTheEnd_WaitsForTheRanksThatAreGone) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    allreduce(group, at::ones({2}))->wait();
    if (rank == 2) allreduce(group, at::ones({2}))->wait();
  });
  ASSERT_EQ(outcome.hang.size(), 1u);
  EXPECT_EQ(outcome.hang[0].rank, 2);
  EXPECT_EQ(outcome.hang[0].waits_on, "allreduce #2 on group \"world\" (1 of 3 ranks are here)");
  EXPECT_THAT(outcome.hang[0].waits_for, ElementsAre(0, 1));
  EXPECT_EQ(failure(outcome),
            "allreduce #2 on group \"world\" timed out after 1800000 ms of virtual time; missing ranks: 0-1");
}

// Nobody waits for the extra call: the run ends well, and the call is left over.
TEST_F(CommTest, ExtraCallThatNobodyWaitsFor_IsLeftPending) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) allreduce(group, at::ones({2}));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned);
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_EQ(pending[0].rank, 1);
  EXPECT_EQ(pending[0].call, "allreduce #1 on group \"world\"");
  EXPECT_EQ(pending[0].description, "allreduce #1 on group \"world\" (1 of 2 ranks are here)");
  EXPECT_THAT(pending[0].waits_for, ElementsAre(0));
}

}  // namespace
}  // namespace rehearse::comm
