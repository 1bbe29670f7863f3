// SPDX-License-Identifier: BSD-3-Clause
// Contract: with preemption, worlds also switch at calls with file names, and at reads and writes of files, so that
// seeds find races between ranks about a file. Programs that are right in every order stay right, and a seed still
// determines the run.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <torch/serialize.h>
#include <unistd.h>

#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/native_scope.h>

namespace preempt_files_test {
namespace {

namespace fs = std::filesystem;
using namespace rehearse;

constexpr int kSeeds = 60;

class PreemptFiles : public testing::Test {
 protected:
  PreemptFiles() : folder_(fs::path(testing::TempDir()) / "rehearse_preempt_files") { fs::remove_all(folder_); }
  ~PreemptFiles() override { fs::remove_all(folder_); }

  // The number of seeds that end in a failed check. Each run begins with an empty folder.
  int failing(const World::Body& body, std::optional<bool> preempt) {
    int failed = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto report = run(body, preempt, seed);
      if (report.verdict == Verdict::check_failed) {
        ++failed;
      } else {
        EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
      }
    }
    return failed;
  }

  Report run(const World::Body& body, std::optional<bool> preempt, std::uint64_t seed) const {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    WorldOptions options;
    options.ranks = 2;
    options.seed = seed;
    options.preempt = preempt;
    options.explain_failures = false;  // a second run would not begin with an empty folder
    return World(options).run(body);
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }

 private:
  const fs::path folder_;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  return text;
}

TEST_F(PreemptFiles, LeaderByExistsAndCreate_IsARace) {
  const auto elects = [this](RankContext& ctx) {
    const bool leads = !fs::exists(path("leader"));
    if (leads) std::ofstream(path("leader")) << "rank";
    auto leaders = at::ones({1}) * (leads ? 1 : 0);
    ctx.group().allreduce(leaders)->wait();
    ctx.expect(leaders.item<float>() == 1, "one rank leads");
  };
  EXPECT_EQ(failing(elects, false), 0);
  const int failed = failing(elects, true);
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, kSeeds);
}

TEST_F(PreemptFiles, ReadOfWhatAnotherRankWrites_IsARace) {
  const auto reads = [this](RankContext& ctx) {
    if (ctx.rank() == 0) std::ofstream(path("checkpoint")) << "complete";
    if (ctx.rank() == 1 && fs::exists(path("checkpoint")))
      ctx.expect(text_of(path("checkpoint")) == "complete", "the checkpoint is complete");
  };
  EXPECT_EQ(failing(reads, false), 0);
  EXPECT_GT(failing(reads, true), 0);
}

TEST_F(PreemptFiles, FileThatIsRenamedIntoItsPlace_IsNone) {
  const auto renames = [this](RankContext& ctx) {
    if (ctx.rank() == 0) {
      std::ofstream(path("checkpoint.part")) << "complete";
      fs::rename(path("checkpoint.part"), path("checkpoint"));
    }
    if (ctx.rank() == 1 && fs::exists(path("checkpoint")))
      ctx.expect(text_of(path("checkpoint")) == "complete", "the checkpoint is complete");
  };
  EXPECT_EQ(failing(renames, true), 0);
}

TEST_F(PreemptFiles, TensorThatIsLoadedWhileItIsSaved_IsARace) {
  const auto exchanges = [this](RankContext& ctx) {
    const auto saved = at::ones({4});
    if (ctx.rank() == 0) torch::save(saved, path("tensor.pt"));
    if (ctx.rank() == 1 && fs::exists(path("tensor.pt"))) {
      at::Tensor loaded;
      bool whole = true;
      try {
        torch::load(loaded, path("tensor.pt"));
      } catch (const c10::Error&) {
        whole = false;
      }
      ctx.expect(whole && loaded.equal(saved), "the tensor is whole");
    }
  };
  EXPECT_EQ(failing(exchanges, false), 0);
  EXPECT_GT(failing(exchanges, true), 0);
}

TEST_F(PreemptFiles, EachKindOfCall_IsADecision) {
  using Call = std::function<void(const std::string& file)>;
  const std::vector<std::pair<const char*, Call>> calls = {
      {"exists()", [](const std::string& file) { (void)fs::exists(file); }},
      {"is_directory()", [](const std::string& file) { (void)fs::is_directory(file); }},
      {"is_symlink()", [](const std::string& file) { (void)fs::is_symlink(file); }},
      {"file_size()", [](const std::string& file) { (void)fs::file_size(file); }},
      {"directory_iterator", [](const std::string& file) { fs::directory_iterator(fs::path(file).parent_path()); }},
      {"copy_file()", [](const std::string& file) { fs::copy_file(file, file + ".copy"); }},
      {"resize_file()", [](const std::string& file) { fs::resize_file(file, 1); }},
      {"remove()", [](const std::string& file) { fs::remove(file); }},
      {"stat()",
       [](const std::string& file) {
         struct stat found;
         ::stat(file.c_str(), &found);
       }},
      {"fopen()", [](const std::string& file) { std::fclose(std::fopen(file.c_str(), "r")); }},
      {"torch::save()", [](const std::string& file) { torch::save(at::ones({1}), file); }},
      {"torch::load()",
       [](const std::string& file) {
         at::Tensor tensor;
         torch::load(tensor, file);
       }},
  };
  for (const auto& [name, call] : calls) {
    const auto report = run(
        [&](RankContext& ctx) {
          const auto file = path(ctx.rank() == 0 ? "a" : "b");
          {
            const exec::NativeScope unseen;
            torch::save(at::ones({1}), file);
          }
          call(file);
        },
        true, 1);
    EXPECT_EQ(report.verdict, Verdict::ok) << name << report.headline;
    EXPECT_GT(report.decisions, 1u) << name;
  }
}

// A write by stdio reaches the file with its buffer, so no rank sees it before fflush() or fclose().
TEST_F(PreemptFiles, WritesOfStdio_AreDecisions) {
  const auto decisions = [this](bool writes) {
    const auto report = run(
        [&](RankContext& ctx) {
          std::FILE* const file = std::fopen(path(ctx.rank() == 0 ? "a" : "b").c_str(), "w");
          if (writes) {
            std::fwrite("abc", 1, 3, file);
            std::fflush(file);
          }
          std::fclose(file);
        },
        true, 1);
    return report.decisions;
  };
  EXPECT_GT(decisions(true), decisions(false));
}

TEST_F(PreemptFiles, WritesByDescriptor_AreDecisions) {
  using Write = std::function<ssize_t(int file)>;
  const auto decisions = [this](const Write& write) {
    const auto report = run(
        [&](RankContext& ctx) {
          const int file = ::open(path(ctx.rank() == 0 ? "a" : "b").c_str(), O_WRONLY | O_CREAT, 0600);
          for (int k = 0; k < 20; ++k) EXPECT_EQ(write(file), 1);
          ::close(file);
        },
        true, 1);
    return report.decisions;
  };
  const auto without = decisions([](int) { return 1; });
  const iovec piece{const_cast<char*>("a"), 1};
  EXPECT_GT(decisions([](int file) { return ::write(file, "a", 1); }), without);
  EXPECT_GT(decisions([&](int file) { return ::writev(file, &piece, 1); }), without);
  EXPECT_GT(decisions([](int file) { return ::pwrite(file, "a", 1, 0); }), without);
  EXPECT_GT(decisions([](int file) { return ::pwrite64(file, "a", 1, 0); }), without);
}

TEST_F(PreemptFiles, OneSeed_IsOneRun) {
  const auto body = [this](RankContext& ctx) {
    if (!fs::exists(path("leader"))) std::ofstream(path("leader")) << ctx.rank();
    fs::create_directory(path(ctx.rank() == 0 ? "a" : "b"));
    ctx.group().barrier()->wait();
  };
  for (const std::uint64_t seed : {1, 2, 3}) EXPECT_EQ(run(body, true, seed).identity, run(body, true, seed).identity);
}

}  // namespace
}  // namespace preempt_files_test
