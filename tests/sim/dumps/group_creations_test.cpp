// SPDX-License-Identifier: BSD-3-Clause
// Contract: ranks that called new_group() differently are a mismatch, whatever their calls on the group look like. The
// groups of one split_group() may share a name.
#include <gtest/gtest.h>

#include "dump_maker.h"
#include "dumps/explain_dumps.h"

namespace rehearse::sim {
namespace {

// Each half makes its own group, and c10d's counter gives both groups the same name. All members call, and no call
// ends.
TEST(GroupCreations, OtherMembers_AreAMismatch) {
  DumpMaker job(4);
  job.add_group("1", {0, 3});
  job.add_group("1", {1, 2});
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "all_reduce_barrier", {1}, false, "1");
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_EQ(report.headline, "new_group() of group \"1\": ranks 0,3 passed {0, 3}, ranks 1-2 passed {1, 2}");
  EXPECT_EQ(report.dumps->culprits, (std::vector<int>{0, 1, 2, 3}));
  ASSERT_EQ(report.differences.size(), 1u);
  EXPECT_EQ(report.differences[0].group, "");
  EXPECT_EQ(report.differences[0].first.fingerprint, "new_group() of group \"1\" {0, 3}");
  EXPECT_EQ(report.differences[0].fields.at(0).name, "ranks");
  EXPECT_NE(report.remarks.at(0).find("dump_rank_0 and "), std::string::npos) << report.remarks[0];
  EXPECT_NE(report.remarks[0].find("dump_rank_1 have a group \"1\" each: ranks 0,3 of {0, 3}, ranks 1-2 of {1, 2}. "
                                   "If all ranks make their groups alike, these dumps are of different jobs"),
            std::string::npos)
      << report.remarks[0];
}

// Ranks 0-2 called, and ranks 0 and 1 passed the same list, so the report names rank 2. It does not blame rank 3, which
// is missing only as a consequence.
TEST(GroupCreations, OddOneOut_IsTheCulprit) {
  DumpMaker job(4);
  job.add_group("1", {0, 1, 2}, "undefined", {0, 1});
  job.add_group("1", {2, 3}, "undefined", {2});
  for (const int rank : {0, 1, 2}) job.call(rank, "all_reduce", {1}, false, "1");
  const auto report = job.explained();
  EXPECT_EQ(report.headline, "rank 2 passed {2, 3} while ranks 0-1 passed {0, 1, 2} to new_group() of group \"1\"");
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{2});
}

// Nobody knows what a rank without a dump passed, so two of four are no majority.
TEST(GroupCreations, RanksWithoutADump_MayHaveAgreedWithEither) {
  DumpMaker job(4);
  job.add_group("1", {0, 1, 2}, "undefined", {0, 1});
  job.add_group("1", {2, 3}, "undefined", {2});
  EXPECT_EQ(job.explained({0, 1, 2}).headline,
            "new_group() of group \"1\": ranks 0-1 passed {0, 1, 2}, rank 2 passed {2, 3}");
}

// The report names the first group that differs. Ranks 0 and 1 made the larger group first.
TEST(GroupCreations, OtherOrder_IsAMismatch) {
  DumpMaker job(4);
  job.add_group("9", {0, 1, 2, 3}, "undefined", {0, 1});
  job.add_group("10", {0, 1}, "undefined", {0, 1});
  job.add_group("9", {2, 3}, "undefined", {2, 3});
  job.add_group("10", {0, 1, 2, 3}, "undefined", {2, 3});
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {1}, false, "9");
  for (const int rank : {2, 3}) job.call(rank, "all_reduce", {1}, false, "10");
  EXPECT_EQ(job.explained().headline,
            "new_group() of group \"9\": ranks 0-1 passed {0, 1, 2, 3}, ranks 2-3 passed {2, 3}");
}

TEST(GroupCreations, OtherOrderOfTheSameMembers_IsToldByTheDescriptions) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) {
    job.add_group("1", {0, 1}, rank == 0 ? "tp" : "dp", {rank});
    job.add_group("2", {0, 1}, rank == 0 ? "dp" : "tp", {rank});
  }
  job.call(0, "all_reduce", {1}, false, "1");
  job.call(1, "all_reduce", {1}, false, "2");
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  EXPECT_EQ(report.headline, "new_group() of group \"1\": rank 0 passed {0, 1} \"tp\", rank 1 passed {0, 1} \"dp\"");
}

TEST(GroupCreations, DescriptionsOfEachRanksOwn_AreNone) {
  DumpMaker job(2);
  for (const int rank : {0, 1}) job.add_group("1", {0, 1}, rank == 0 ? "of rank 0" : "of rank 1", {rank});
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {1}, true, "1");
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_TRUE(report.remarks.empty());
}

// In older versions of PyTorch, the groups of one split share a name. If their calls do not end, a remark names these
// groups. Ranks that passed different arguments to new_group() would leave the same dumps.
TEST(GroupCreations, GroupsOfOneSplit_AreNone) {
  for (const bool completed : {true, false}) {
    DumpMaker job(4);
    for (const int first : {0, 2}) {
      const std::vector<int> pair{first, first + 1};
      job.add_group("1", pair, "mesh_dp", pair);
      job.add_group("2", pair, first == 0 ? "a:split:1" : "b:split:1", pair);
    }
    for (int rank = 0; rank < 4; ++rank) job.call(rank, "all_reduce", {1}, completed, "1");
    const auto report = job.explained();
    EXPECT_EQ(report.verdict, completed ? Verdict::ok : Verdict::timeout);
    if (completed) {
      EXPECT_TRUE(report.remarks.empty());
    } else {
      EXPECT_EQ(report.remarks, std::vector<std::string>{
                                    "group \"1\" has other members on other ranks: ranks 0-1 of {0, 1}, ranks 2-3 of "
                                    "{2, 3}. One split_group() may make such groups; new_group() needs the same "
                                    "arguments on all ranks"});
    }
  }
}

// If each rank used only one group, its recorder may not contain the other group.
TEST(GroupCreations, TwoGroupsOfWhichEachRankUsesOne_AreRemarkedOn) {
  DumpMaker job(2);
  job.add_group("1", {0, 1}, "undefined", {0});
  job.add_group("2", {0, 1}, "undefined", {1});
  job.call(0, "all_reduce", {1}, false, "1");
  job.call(1, "all_reduce", {1}, false, "2");
  const auto report = job.explained();
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(
      report.remarks,
      std::vector<std::string>{
          "groups \"1\" and \"2\" both have ranks 0-1; rank 0 called on the first alone, rank 1 on the second. If "
          "the program makes one such group, the ranks call new_group() in different orders"});
}

Report of_recording(const Json& recording) {
  const auto file = dumps_folder() / "flight_recorder.json";
  write_dump(file, json_text(recording));
  return explain_dumps({file.string()});
}

Json recorded_group(const char* name, std::vector<int> ranks) {
  return {{"name", name}, {"desc", name}, {"ranks", std::move(ranks)}};
}

// A recording of a simulation says which ranks made each group. So groups of one split differ from groups that ranks
// made differently by mistake.
TEST(GroupCreations, RecordingOfARehearsal_SaysWhoMadeWhat) {
  auto first = recorded_group("half", {0, 1}), second = recorded_group("half", {2, 3});
  const auto with = [&] {
    return Json{{"version", "2.10"},
                {"groups", Json::array({first, second})},
                {"entries", Json::array({Json::array(), Json::array(), Json::array(), Json::array()})}};
  };
  EXPECT_EQ(of_recording(with()).verdict, Verdict::ok);
  first["made_by"] = std::vector<int>{0, 1};
  second["made_by"] = std::vector<int>{2};
  EXPECT_EQ(of_recording(with()).headline,
            "rank 2 passed {2, 3} \"half\" while ranks 0-1 passed {0, 1} \"half\" to new_group() of group \"half\"");
}

// A rank may have a group of the same name besides its version of the disputed group, or two versions.
TEST(GroupCreations, DisputedGroup_HasANameOfItsOwnOnEachRank) {
  const auto recording = [](const Json& groups) {
    return Json{{"version", "2.10"},
                {"groups", groups},
                {"entries", Json::array({Json::array(), Json::array(), Json::array()})}};
  };
  auto two = recorded_group("half", {0, 1}), three = recorded_group("half", {0, 1, 2});
  two["made_by"] = std::vector<int>{0};
  three["made_by"] = std::vector<int>{1, 2};
  EXPECT_EQ(of_recording(recording(Json::array({recorded_group("half", {0}), two, three}))).headline,
            "rank 0 passed {0, 1} \"half\" while ranks 1-2 passed {0, 1, 2} \"half\" to new_group() of group "
            "\"half#2\"");
  three["made_by"] = std::vector<int>{0};
  EXPECT_EQ(of_recording(recording(Json::array({two, three}))).verdict, Verdict::ok);
  const auto all = recorded_group("half", {0, 1});
  EXPECT_EQ(of_recording(recording(Json::array({all, all, recorded_group("half#2", {0, 1})}))).verdict, Verdict::ok);
}

// Two groups of one name share rank 1, which is no mistake.
TEST(GroupCreations, GroupsOfOneNameThatShareARank_AreToldApartByTheirNumbers) {
  DumpMaker job(3);
  job.add_group("pair", {0, 1, 2});
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {4}, true, "pair")["pg_id"] = 0;
  job.call(1, "broadcast", {8}, true, "pair")["pg_id"] = 1;
  job.call(2, "broadcast", {8}, true, "pair")["pg_id"] = 1;
  job.dump(1)["entries"].items()[1]["collective_seq_id"] = 1;
  Json entries = Json::array();
  for (const int rank : {0, 1, 2}) entries.push_back(job.dump(rank)["entries"]);
  const Json recording{{"version", "2.10"},
                       {"groups", Json::array({recorded_group("pair", {0, 1}), recorded_group("pair", {1, 2})})},
                       {"entries", entries}};
  EXPECT_EQ(of_recording(recording).headline, "all 4 calls in the dumps are complete");
}

// Rank 0 is in the first, the third and the fourth group.
TEST(GroupCreations, GroupsOfOneNameOfWhichSomeShareARank_AreToldApart) {
  DumpMaker job(2);
  job.add_group("pair", {0, 1});
  for (const int rank : {0, 1}) job.call(rank, "all_reduce", {4}, true, "pair")["pg_id"] = 2;
  job.call(0, "broadcast", {8}, true, "pair")["pg_id"] = 3;
  job.dump(0)["entries"].items()[1]["collective_seq_id"] = 1;
  const Json recording{{"version", "2.10"},
                       {"groups", Json::array({recorded_group("pair", {0}), recorded_group("pair", {1}),
                                               recorded_group("pair", {0, 1}), recorded_group("pair", {0})})},
                       {"entries", Json::array({job.dump(0)["entries"], job.dump(1)["entries"]})}};
  EXPECT_EQ(of_recording(recording).headline, "all 3 calls in the dumps are complete");
}

}  // namespace
}  // namespace rehearse::sim
