// SPDX-License-Identifier: BSD-3-Clause
// Contract: a tensor that reaches beyond its memory is a finding at the call, not a crash.
#include <chrono>

#include <sys/mman.h>
#include <unistd.h>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "buffers/footprint.h"
#include "checked_world.h"

// Outside namespace rehearse, because without line tables, reports take code of that namespace for library code.
namespace checked_programs {
namespace {

using namespace rehearse;
using namespace rehearse::test;

// Eight pages. Only the first is readable: the others are protected, or not mapped.
class Pages {
 public:
  explicit Pages(bool protect) {
    base_ = ::mmap(nullptr, 8 * bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (protect) {
      ::mprotect(behind(), 7 * bytes(), PROT_NONE);
    } else {
      ::munmap(behind(), 7 * bytes());
    }
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(base_, 8 * bytes()); }

  float* begin() const { return static_cast<float*>(base_); }
  void unmap() const { ::munmap(base_, bytes()); }
  static std::size_t bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

 private:
  void* behind() const { return static_cast<char*>(base_) + bytes(); }

  void* base_;
};

TEST(ReadableBytes, EndAtThePageThatIsNotThere) {
  for (const bool protect : {false, true}) {
    const Pages pages(protect);
    const auto* const begin = reinterpret_cast<const std::byte*>(pages.begin());
    EXPECT_EQ(sim::readable_bytes({begin, begin + 10}), 10u);
    EXPECT_EQ(sim::readable_bytes({begin, begin + Pages::bytes()}), Pages::bytes());
    EXPECT_EQ(sim::readable_bytes({begin + 4, begin + 2 * Pages::bytes()}), Pages::bytes() - 4);
    EXPECT_EQ(sim::readable_bytes({begin + Pages::bytes(), begin + 2 * Pages::bytes()}), 0u);
  }
  const auto many = at::zeros({3 << 20}, at::kByte);
  const auto* const begin = static_cast<const std::byte*>(many.data_ptr());
  EXPECT_EQ(sim::readable_bytes({begin, begin + many.nbytes()}), many.nbytes());
}

TEST(BufferMemory, LargerThanItsMemory_NamesLineAndSizes) {
  constexpr int kLine = __LINE__ + 8;
  for (const bool protect : {false, true}) {
    const Pages pages(protect);
    const auto report = run_checked([&](RankContext& ctx) {
      auto value = at::zeros({2, 1024});
      if (ctx.rank() == 1) {
        value = at::from_blob(pages.begin(), {2, static_cast<std::int64_t>(Pages::bytes() / 4)}, at::kFloat);
      }
      ctx.group().allreduce(value)->wait();
    });
    EXPECT_TRUE(says(report, R"(rank 1: allreduce #1 on group "world" at )" + place(__FILE__, kLine)))
        << report.headline;
    EXPECT_TRUE(says(report,
                     "works on more memory than its tensor owns: float of sizes [2, 1024] take 8192 bytes, but "
                     "only the first 4096 of them exist"))
        << report.headline;
  }
}

TEST(BufferMemory, LargerThanItsStorage_IsFound) {
  const auto report = run_checked([](RankContext& ctx) {
    auto value = at::zeros({4});
    if (ctx.rank() == 0) value.storage().unsafeGetStorageImpl()->set_nbytes(8);
    ctx.group().allreduce(value)->wait();
  });
  EXPECT_TRUE(says(report, "take 16 bytes, but only the first 8 of them exist")) << report.headline;
}

TEST(BufferMemory, UnmappedInFlight_IsFound) {
  const Pages pages(false);
  const auto report = run_checked([&](RankContext& ctx) {
    auto value = at::zeros({8});
    if (ctx.rank() == 1) value = at::from_blob(pages.begin(), {8}, at::kFloat);
    auto work = ctx.group().allreduce(value);
    if (ctx.rank() == 1) pages.unmap();
    work->wait();
  });
  EXPECT_TRUE(says(report, R"(rank 1: the memory of the tensor of allreduce #1 on group "world")")) << report.headline;
  EXPECT_TRUE(says(report, "was freed while the call was under way")) << report.headline;
}

TEST(BufferMemory, BlobOfItsSize_IsNoFinding) {
  const Pages pages(true);
  expect_silent([&](RankContext& ctx) {
    auto value = at::zeros({1024});
    const auto all = static_cast<std::int64_t>(Pages::bytes() / sizeof(float));
    if (ctx.rank() == 1) value = at::from_blob(pages.begin() + all - 1024, {1024}, at::kFloat);
    auto work = ctx.group().allreduce(value);
    ctx.compute(std::chrono::seconds(1));
    work->wait();
  });
}

}  // namespace
}  // namespace checked_programs
