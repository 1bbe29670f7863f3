// SPDX-License-Identifier: BSD-3-Clause
// Contract: damaged, foreign and mixed files are refused. The error names the file, the field and the value, and says
// what would be right.
#include <fstream>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dump_maker.h"
#include "dumps/dump.h"
#include "dumps/explain_dumps.h"

namespace rehearse::sim {
namespace {

class RefusedDumps : public testing::Test {
 protected:
  RefusedDumps() : job_(2) {
    for (const int rank : {0, 1}) job_.call(rank, "all_reduce", {4});
  }

  // The error for rank 0's dump after `change` was applied to its first entry.
  template <class Change>
  std::string changed(const Change& change) {
    auto dump = job_.dump(0);
    change(dump["entries"].items()[0]);
    return refused(dump);
  }

  std::string refused(const Json& dump) {
    const auto file = folder_ / "dump_rank_0";
    write_dump(file, pickled(dump));
    return refusal({file.string()});
  }

  std::string file(const std::string& name, const std::string& bytes) {
    write_dump(folder_ / name, bytes);
    return (folder_ / name).string();
  }

  const std::filesystem::path folder_ = dumps_folder();
  DumpMaker job_;
};

TEST_F(RefusedDumps, FieldOfAnEntry_IsNamedWithItsValue) {
  const auto with = [this](const char* key, Json value) { return changed([&](Json& entry) { entry[key] = value; }); };
  EXPECT_EQ(with("state", "done"),
            "dump_rank_0: entries[0].state is \"done\"; right would be scheduled, started or completed");
  EXPECT_EQ(with("record_id", -1),
            "dump_rank_0: entries[0].record_id is -1; right would be an integer from 0 to 9223372036854775807");
  EXPECT_EQ(with("profiling_name", "all_reduce"),
            "dump_rank_0: entries[0].profiling_name is \"all_reduce\"; right would be a back end and a call, as in "
            "nccl:all_reduce or nccl:send 0->1");
  EXPECT_EQ(with("profiling_name", "nccl:send 0-1").substr(0, 60),
            "dump_rank_0: entries[0].profiling_name is \"nccl:send 0-1\"; r");
  EXPECT_EQ(with("process_group", "0"), "dump_rank_0: entries[0].process_group is \"0\"; right would be a list");
  EXPECT_EQ(
      with("input_dtypes", Json::array({"float"})),
      "dump_rank_0: entries[0].input_dtypes[0] is \"float\"; right would be a dtype as c10 prints it, as in Float or "
      "BFloat16");
  EXPECT_EQ(with("input_dtypes", Json::array()),
            "dump_rank_0: entries[0].input_dtypes is []; right would be as many dtypes as input_sizes has sizes, 1");
  EXPECT_EQ(with("input_sizes", Json::array({Json::array({-4})})),
            "dump_rank_0: entries[0].input_sizes[0][0] is -4; right would be an integer from 0 to 72057594037927936");
  EXPECT_EQ(with("frames", Json::array({1})),
            "dump_rank_0: entries[0].frames[0] is 1; right would be a dict with the key \"name\"");
}

TEST_F(RefusedDumps, FieldThatIsMissing_IsNamed) {
  auto dump = job_.dump(0);
  dump["entries"].items()[0] = Json{{"record_id", 0}};
  EXPECT_EQ(refused(dump),
            "dump_rank_0: entries[0].process_group is missing, which every dump of a flight recorder has");
  EXPECT_EQ(refused(Json{{"weights", 1}}),
            "dump_rank_0: version is missing, which every dump of a flight recorder has");
  EXPECT_EQ(refused(Json::array({1})), "dump_rank_0: the whole is [1]; right would be a dict with the key \"version\"");
  dump = job_.dump(0);
  dump["pg_config"]["0"]["ranks"] = "0-1";
  EXPECT_EQ(refused(dump),
            "dump_rank_0: pg_config.0.ranks is \"0-1\"; right would be ranks in brackets, as in \"[0, 1]\"");
}

TEST_F(RefusedDumps, FilesThatAreNoDumps) {
  EXPECT_EQ(refusal({file("notes_3", "hello")}), "notes_3: is neither a pickle nor JSON");
  EXPECT_EQ(refusal({file("a_3.json", "{\"version\": ")}), "a_3.json: is not JSON, see byte 13");
  EXPECT_EQ(refusal({file("model_0",
                          "\x80\x02"
                          "cbuiltins\neval\nX\x01\0\0\0"
                          "1\x85R.")})
                .substr(0, 71),
            "model_0: would have Python run code: opcode GLOBAL at byte 2; a dump ho");
  EXPECT_EQ(refusal({file("dump_rank_1", "\x80\x02}")}), "dump_rank_1: ends in the middle of a value, at byte 3");
  EXPECT_EQ(refusal({file("dump", pickled(job_.dump(0)))}),
            "dump: does not say of which rank it is; right would be a name that ends so, as in dump_rank_3. (A "
            "report.json or run.rlog is explained alone.)");
  EXPECT_EQ(refusal({(folder_ / "gone_0").string()}), "gone_0: cannot be read: No such file or directory");
}

TEST_F(RefusedDumps, DumpOfAllRanksWithoutRanks) {
  EXPECT_EQ(refusal({file("flight_recorder.json", R"({"version": "2.10", "groups": [], "entries": []})")}),
            "flight_recorder.json: entries is []; right would be a list of entries for each rank");
}

TEST_F(RefusedDumps, FilesThatDoNotBelongTogether) {
  const auto first = file("dump_rank_0", pickled(job_.dump(0)));
  EXPECT_EQ(refusal({first, file("old_0", pickled(job_.dump(0)))}),
            "old_0: is of rank 0, and so is dump_rank_0: give each rank's dump once");
  EXPECT_EQ(refusal({first, file("dump_rank_1", pickled(DumpMaker(2, "2.4").dump(1)))}),
            "dump_rank_1: version is \"2.4\", and dump_rank_0 has \"2.10\": the dumps of one job have one version");
  EXPECT_EQ(
      refusal({first, file("dump_rank_1", pickled(DumpMaker(4).dump(1)))}),
      "dump_rank_1: its group \"0\" (default_pg) has ranks 0-3, and in dump_rank_0 it has ranks 0-1: the dumps are of "
      "different jobs");
  EXPECT_EQ(refusal({file("dump_rank_5", pickled(job_.dump(0)))}),
            "dump_rank_5: is of rank 5 by its name, but its group \"0\" (default_pg) has ranks 0-1 only: right would "
            "be a file "
            "of a job with that rank");
}

TEST_F(RefusedDumps, TwoLibrariesOrBackEnds_AreNoOneJob) {
  DumpMaker other(2);
  other.call(1, "all_reduce", {4})["profiling_name"] = "gloo:all_reduce";
  const auto first = file("dump_rank_0", pickled(job_.dump(0)));
  EXPECT_EQ(refusal({first, file("dump_rank_1", pickled(other.dump(1)))}),
            "dump_rank_1: profiling_name of record 0 is \"gloo:all_reduce\", and in dump_rank_0 that of record 0 is "
            "\"nccl:all_reduce\": the dumps of one job come from one back end; give those of gloo or those of nccl");
  job_.dump(0)["comm_lib_version"] = "2.28.9";
  for (const char* theirs : {"2.27.5", ""}) {
    job_.dump(1)["comm_lib_version"] = theirs;
    const auto one = file("dump_rank_0", pickled(job_.dump(0)));
    EXPECT_EQ(
        refusal({one, file("dump_rank_1", pickled(job_.dump(1)))}),
        fmt::format("dump_rank_1: comm_lib_version is \"{}\", and dump_rank_0 has \"2.28.9\": the dumps of one job "
                    "have one library",
                    theirs));
  }
}

TEST_F(RefusedDumps, RankWithoutCalls_IsOfTheJob) {
  const auto first = file("dump_rank_0", pickled(DumpMaker(2).dump(0)));
  EXPECT_EQ(refusal({first, file("dump_rank_1", pickled(job_.dump(1)))}), "");
}

// c10d names some groups by a hash of their members, so other members show another job. It names other groups by a
// number. Their members may differ because of a mistake in the job.
TEST_F(RefusedDumps, GroupOfOtherMembers_IsOfAnotherJob) {
  const std::string name = "0123456789abcdef0123456789abcdef01234567";
  DumpMaker one(4), other(4);
  one.add_group(name, {0, 1});
  other.add_group(name, {1, 2});
  const auto first = file("dump_rank_0", pickled(one.dump(0)));
  EXPECT_EQ(refusal({first, file("dump_rank_1", pickled(other.dump(1)))}),
            "dump_rank_1: its group \"" + name +
                "\" (undefined) has ranks 1-2, and in dump_rank_0 it has ranks 0-1: the dumps are of different jobs");
  other.add_group(name, {0, 1}, "undefined", {1});
  EXPECT_EQ(refusal({first, file("dump_rank_1", pickled(other.dump(1)))}), "");
}

TEST_F(RefusedDumps, WhatIsThereTwice) {
  job_.call(0, "all_reduce", {4})["record_id"] = 0;
  EXPECT_EQ(refused(job_.dump(0)),
            "dump_rank_0: entries[1].record_id is 0; right would be each record once, and entry 0 is that one");
  auto dump = DumpMaker(2).dump(0);
  dump["pg_config"]["0"]["ranks"] = "[0, 0, 1, 1]";
  EXPECT_EQ(refused(dump),
            "dump_rank_0: pg_config.0.ranks is \"[0, 0, 1, 1]\"; right would be each rank once, and rank 0 is there "
            "twice");
}

TEST_F(RefusedDumps, FolderOfTwoJobsOrOfNone) {
  const auto inside = folder_ / "in";
  std::filesystem::create_directories(inside);
  EXPECT_EQ(refusal({inside.string()}),
            "in: has no dumps, which are pickles or JSON with names that end in a rank, as in dump_rank_3");
  write_dump(inside / "dump_rank_0", "");
  EXPECT_EQ(refusal({inside.string()}),
            "in/dump_rank_0: is empty, and no dump lies beside it; right would be a pickle or JSON");
  std::filesystem::remove(inside / "dump_rank_0");
  write_dump(inside / "new_0", pickled(job_.dump(0)));
  write_dump(inside / "old_0", pickled(job_.dump(0)));
  write_dump(inside / "log_0", "no dump");
  EXPECT_EQ(refusal({inside.string()}),
            "in: has dumps of different names, new_* and old_*: give those of one job, as in in/new_*");
}

TEST_F(RefusedDumps, MessageOutsideOfItsGroup) {
  job_.call(0, "send 0->7", {4});
  EXPECT_EQ(refused(job_.dump(0)),
            "dump_rank_0: record 1 is nccl:send between ranks 0 and 7 of group \"0\", which has 2 ranks");
}

// Property: dumps with changed bytes are explained, or refused with a sentence.
TEST_F(RefusedDumps, Mutated_AreExplainedOrRefused) {
  std::ifstream in(std::string(RECORDED_DUMPS) + "/nccl_skip_json/dump_rank_0.json", std::ios::binary);
  std::ostringstream read;
  read << in.rdbuf();
  const std::string whole = read.str();
  std::mt19937 random(11);
  int explained = 0;
  for (int round = 0; round < 400; ++round) {
    auto bytes = whole;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = "0123456789[]{},:\"ax"[random() % 19];
    const auto path = file("dump_rank_0.json", bytes);
    try {
      explained += explain_dumps({path}).headline.empty() ? 0 : 1;
    } catch (const DumpError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path + ": ")) << error.what();
    }
  }
  EXPECT_GT(explained, 10);
  EXPECT_LT(explained, 400);
}

}  // namespace
}  // namespace rehearse::sim
