// SPDX-License-Identifier: BSD-3-Clause
// Contract: each rank of each seed has a folder for its files. Writes there, by C++ streams or by file descriptors, may
// fail, tear, take long or be the rank's last action. Writes elsewhere never do.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <rehearse_internal/exec/this_rank.h>

#include "faulty_world.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::HasSubstr;

constexpr std::size_t kBytes = 100'000;

// Returns false if the file could not be written as a whole.
bool save(const std::filesystem::path& file, char content) {
  std::ofstream out(file, std::ios::binary);
  out << std::string(kBytes, content);
  out.close();
  return out.good();
}

std::size_t size_of(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? static_cast<std::size_t>(std::filesystem::file_size(file)) : 0;
}

// Rank 1 saves twice, the second time over the first file.
void save_twice(RankContext& ctx) {
  if (ctx.rank() == 0) return;
  const auto file = ctx.scratch_folder() / "model.pt";
  if (ctx.incarnation() == 0) {
    for (const char content : {'a', 'b'}) ctx.expect(save(file, content), "the model is saved");
  } else {
    ctx.expect(size_of(file) == kBytes, "the model is whole");
  }
}

Report run_two(const std::vector<std::string>& faults, const World::Body& body = save_twice) {
  return run(world_with(faults, 2), body);
}

TEST(ScratchFolder, IsEachRanksOwnAndEmpty) {
  std::vector<std::filesystem::path> folders;
  const auto report = run_two({}, [&](RankContext& ctx) {
    const auto folder = ctx.scratch_folder();
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_EQ(ctx.scratch_folder(), folder);
    EXPECT_TRUE(save(folder / "file", 'x'));
    folders.push_back(folder);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  ASSERT_EQ(folders.size(), 4u);  // run() runs the body twice
  EXPECT_NE(folders[0], folders[1]);
  for (const auto& folder : folders) EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

TEST(ScratchFolder, OfARunThatFailed_IsKept) {
  auto options = world_with({}, 2);
  options.scratch = std::filesystem::path(testing::TempDir()) / "kept_scratch";
  options.seed = 7;
  const auto report = World(options).run([](RankContext& ctx) {
    save(ctx.scratch_folder() / "model.pt", 'a');
    ctx.expect(ctx.rank() == 0, "it is rank 0");
  });
  EXPECT_EQ(report.verdict, Verdict::check_failed);
  EXPECT_THAT(report.remarks,
              Contains(HasSubstr("what ranks wrote is kept in " + (options.scratch / "seed-7").string())));
  EXPECT_EQ(size_of(options.scratch / "seed-7" / "rank-1" / "model.pt"), kBytes);
  std::filesystem::remove_all(options.scratch);
}

TEST(DiskFaults, FullDisk_FailsTheWrite) {
  const auto report = run_two({"disk_full rank=1 call=write#2"});
  EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
  EXPECT_EQ(fired(report), "rank 1 in write #2 to \"model.pt\"");
  EXPECT_EQ(run_two({"disk_full rank=1 file=*.txt optional=true"}).verdict, Verdict::ok);
  EXPECT_EQ(run_two({"fail_op rank=1 at=write#1"}).verdict, Verdict::check_failed);
}

TEST(DiskFaults, TornWrite_LeavesHalfAndCrashes) {
  const auto report = run_two({"torn_write rank=1 call=write#2 restart=1ms"});
  EXPECT_EQ(report.verdict, Verdict::check_failed) << report.headline;
  EXPECT_THAT(report.headline, HasSubstr("the model is whole"));
  EXPECT_EQ(fired(report), "rank 1 in write #2 to \"model.pt\"");
}

// The crash precedes the write. The first file's contents are gone, because opening the file has emptied it.
TEST(DiskFaults, CrashAtAWrite_ComesBeforeIt) {
  EXPECT_EQ(run_two({"crash rank=1 at=write#2 restart=1ms"}).verdict, Verdict::check_failed);
}

TEST(DiskFaults, SlowDisk_TakesTime) {
  const auto report = run_two({"slow_disk rank=1 for=5ms times=2"});
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(report.end_time, VirtualTime(milliseconds(10)));
  EXPECT_EQ(run_two({"pause rank=1 at=write#1 for=3ms"}).end_time, VirtualTime(milliseconds(3)));
}

TEST(DiskFaults, FilesElsewhere_AreLeftAlone) {
  const auto file = std::filesystem::path(testing::TempDir()) / "elsewhere";
  const auto report =
      run_two({"disk_full"}, [&](RankContext& ctx) { EXPECT_TRUE(ctx.rank() == 0 || save(file, 'a')); });
  EXPECT_EQ(report.verdict, Verdict::fault_not_fired);
  EXPECT_THAT(report.headline, HasSubstr("no write fitted; all ranks made 0 writes in their scratch folders"));
}

TEST(DiskFaults, OfDescriptors_Too) {
  const auto report = run_two({"disk_full rank=1 call=write#2 times=1"}, [](RankContext& ctx) {
    if (ctx.rank() == 0) return;
    const auto path = ctx.scratch_folder() / "raw";
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
    EXPECT_EQ(::write(file, "abc", 3), 3);
    EXPECT_EQ(::pwrite(file, "def", 3, 3), -1);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(::pwrite(file, "def", 3, 3), 3);
    ::close(file);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(DiskFaults, ThatMakeNoSense_AreRefused) {
  for (const std::string text : {"slow_disk rank=1", "disk_full at=set#1", "torn_write call=allreduce#1",
                                 "disk_full group=world", "crash file=a"}) {
    EXPECT_THROW(parse_fault(text), FaultError) << text;
  }
  EXPECT_EQ(to_string(parse_fault("torn_write rank=1 call=write#2 file=*.pt")),
            "torn_write rank=1 call=write#2 file=*.pt");
}

}  // namespace
}  // namespace rehearse::test
