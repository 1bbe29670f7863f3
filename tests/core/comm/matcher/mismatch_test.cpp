// SPDX-License-Identifier: BSD-3-Clause
// Contract: if two ranks make different calls with the same sequence number, the report comes before any data moves and
// lists exactly the fields that differ. With c10d's own back ends, most of these mistakes are silent or hang. Calls
// that fit are left alone.
#include <string>
#include <vector>

#include "core/comm/matcher/mismatch_cases.h"
#include "core/comm/test_world.h"

namespace rehearse::comm {
namespace {

using c10d::ReduceOp;
using testing::_;
using testing::ElementsAre;
using Fields = std::vector<Mismatch::Field>;

class Mismatches : public CommTest, public testing::WithParamInterface<MismatchCase> {};

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

INSTANTIATE_TEST_SUITE_P(Collectives, Mismatches, testing::ValuesIn(mismatch_cases()),
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
                     "rank 2 called allreduce(max, float32[2], cpu) while ranks 0-1 called allreduce(sum, float32[2], "
                     "cpu) as #1 of group \"world\": reduce_op max, not sum");
        throw;
      }
    }
    EXPECT_THROW(allreduce(group, at::ones({2}))->wait(), RankAborted);
  });
  EXPECT_THAT(mismatches.at(0).first.alike, ElementsAre(0, 1));
  EXPECT_EQ(outcome.ending, exec::Ending::stopped);
}

// Only the names reveal this swap, because all calls have the same op and shape.
TEST_F(CommTest, SwappedCallsOfEqualShape_DifferInTheirLabels) {
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

// A tensor may have a name (as DDP's buckets have). Calls with different names do not fit; a call without a name fits
// any.
TEST_F(CommTest, NamedPayloads_FitEqualNamesAndUnnamedOnes) {
  const auto run_with = [&](const char* name_of_rank_1) {
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
  EXPECT_EQ(run_with("bucket 0: weight").ending, exec::Ending::all_returned);
  EXPECT_EQ(events->title(events->of_rank(1)[0]), "allreduce #1 of \"bucket 0: weight\" on group \"world\"");
  EXPECT_EQ(events->title(events->of_rank(2)[0]), "allreduce #1 on group \"world\"");
  EXPECT_EQ(events->title(events->of_rank(0)[1]), "allreduce #2 on group \"world\"");
  EXPECT_EQ(run_with("bucket 0: bias").ending, exec::Ending::stopped);
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields, (Fields{{"label", "\"bucket 0: weight\"", "\"bucket 0: bias\""}}));
}

TEST_F(CommTest, LongNames_AreCutAndStillDiffer) {
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

TEST_F(CommTest, LongNames_AreCutBetweenWords) {
  const std::string before = "DDP bucket 0 of 1: encoder.layers.0.linear.weight, ", after = ", encoder.layers.2.weight";
  run(2, [&](int rank, const ProcessGroup& group) {
    const auto tensor = at::ones({2});
    communicators->name_payload(rank, tensor, before + (rank == 0 ? "decoder.norm" : "decoder.nose") + after);
    allreduce(group, tensor)->wait();
  });
  ASSERT_EQ(mismatches.size(), 1u);
  EXPECT_EQ(mismatches[0].fields,
            (Fields{{"label", "\"... decoder.norm" + after + "\"", "\"... decoder.nose" + after + "\""}}));
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

// An extra call on one rank shifts all its later calls. The report names the first place where the ranks differ.
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

// The extra call is the last one. No other rank makes a call at that place, so the rank waits for ranks that have
// ended. That is no mismatch.
TEST_F(CommTest, ExtraCallAtTheEnd_WaitsForTheRanksThatAreGone) {
  const auto outcome = run(3, [](int rank, const ProcessGroup& group) {
    allreduce(group, at::ones({2}))->wait();
    if (rank == 2) allreduce(group, at::ones({2}))->wait();
  });
  ASSERT_EQ(outcome.hang.size(), 1u);
  EXPECT_EQ(outcome.hang[0].rank, 2);
  EXPECT_EQ(outcome.hang[0].waits_on, "allreduce #2 on group \"world\" (1 of 3 ranks has called it)");
  EXPECT_THAT(outcome.hang[0].waits_for, ElementsAre(0, 1));
  EXPECT_EQ(failure(outcome),
            "allreduce #2 on group \"world\": Timed out waiting 1800000ms of virtual time; missing ranks 0-1");
}

TEST_F(CommTest, ExtraCallWithoutAWait_IsLeftPending) {
  const auto outcome = run(2, [](int rank, const ProcessGroup& group) {
    if (rank == 1) allreduce(group, at::ones({2}));
  });
  EXPECT_EQ(outcome.ending, exec::Ending::all_returned);
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_EQ(pending[0].rank, 1);
  EXPECT_EQ(pending[0].call, "allreduce #1 on group \"world\"");
  EXPECT_EQ(pending[0].description, "allreduce #1 on group \"world\" (1 of 2 ranks has called it)");
  EXPECT_THAT(pending[0].waits_for, ElementsAre(0));
}

}  // namespace
}  // namespace rehearse::comm
