// SPDX-License-Identifier: BSD-3-Clause
// Contract: the reader accepts dumps of formats 2.0 to 2.11, with the fields that each format has. It reads later
// formats 2.x with a remark, and refuses other major numbers.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "dump_maker.h"

namespace rehearse::sim {
namespace {

// A field of an entry, and the minor number of the version that added the field.
struct Since {
  int minor;
  const char* key;
};

constexpr Since kEntryFields[] = {{2, "timeout_ms"}, {2, "is_p2p"}, {2, "input_dtypes"}, {2, "output_dtypes"}};

Json without(const Json& entry, int minor) {
  Json kept = Json::object();
  for (const auto& [key, value] : entry.entries()) {
    bool there = true;
    for (const auto& field : kEntryFields) there = there && (minor >= field.minor || key != field.key);
    if (there) kept[key] = value;
  }
  return kept;
}

DumpMaker job_of(int minor) {
  DumpMaker job(2, fmt::format("2.{}", minor));
  for (const int rank : {0, 1}) {
    job.call(rank, "all_reduce", {4});
    job.call(rank, rank == 0 ? "send 0->1" : "recv 1<-0", {2});
  }
  job.call(0, "all_reduce", {8}, false);
  for (const int rank : {0, 1}) {
    if (minor >= 3) job.dump(rank)["pg_status"] = Json{{"0", {{"last_enqueued_collective", rank == 0 ? 2 : 1}}}};
    if (minor >= 5) job.dump(rank)[minor >= 9 ? "comm_lib_version" : "nccl_version"] = "2.28.9";
    for (auto& entry : job.dump(rank)["entries"].items()) entry = without(entry, minor);
  }
  return job;
}

TEST(DumpVersions, From20To211_TellTheSame) {
  for (int minor = 0; minor <= 11; ++minor) {
    const auto report = job_of(minor).explained();
    EXPECT_EQ(
        report.headline,
        "allreduce #2 on group \"0:default_pg\": rank 1 has not come; rank 1 called last: recv #1 from rank 0 on group "
        "\"0:default_pg\"")
        << minor;
    EXPECT_EQ(report.dumps->format, fmt::format("2.{}", minor));
    EXPECT_EQ(report.transport, minor >= 5 ? "nccl 2.28.9" : "nccl");
    EXPECT_TRUE(report.remarks.empty()) << minor;
  }
}

TEST(DumpVersions, OneThatCameLater_IsReadWithARemark) {
  const auto report = job_of(12).explained();
  EXPECT_EQ(report.dumps->culprits, std::vector<int>{1});
  EXPECT_EQ(report.remarks,
            std::vector<std::string>{
                "the dumps have format 2.12; this version knows 2.11 at most, and ignores fields that came later"});
}

TEST(DumpVersions, OfAnotherMajorNumber_IsRefused) {
  for (const char* version : {"1.5", "3.0", "2", "2.x", "", "2.10.1"}) {
    DumpMaker job(1, version);
    const auto file = dumps_folder() / "dump_rank_0";
    write_dump(file, pickled(job.dump(0)));
    EXPECT_EQ(refusal({file.string()}),
              fmt::format("dump_rank_0: version is \"{}\"; right would be a version from 2.0 to 2.11", version));
  }
}

}  // namespace
}  // namespace rehearse::sim
