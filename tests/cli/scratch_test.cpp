// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a seed fails, the scratch files of its ranks are kept, in a folder for this seed. A sweep reports each
// file that more than one seed wrote.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Scratch : public ::testing::Test {
 protected:
  void scenario(const std::string& more) const { write_file(folder_ / "saves.toml", "program = \"saves\"\n" + more); }
  Finished job(std::vector<std::string> arguments) const {
    arguments.emplace_back("--quiet");
    return run_process(CLI_JOB, arguments, folder_);
  }
  std::filesystem::path model(int seed) const {
    return folder_ / "rehearse-out/saves/scratch" / ("seed-" + std::to_string(seed)) / "rank-1/model";
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Scratch, OfARunThatIsOk_IsGone) {
  scenario("");
  EXPECT_EQ(job({"run", "saves.toml", "--seed=3"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(model(3)));
}

TEST_F(Scratch, OfSeedsThatFail_IsKept) {
  scenario("[parameters]\nholds = false\n");
  const auto run = job({"run", "saves.toml", "--seed=3"});
  EXPECT_EQ(run.exit_code, 6);
  EXPECT_THAT(run.out, HasSubstr("remark: what ranks wrote is kept in rehearse-out/saves/scratch/seed-3"));
  EXPECT_EQ(read_file(model(3)), "weights");
  const auto sweep = job({"sweep", "saves.toml", "--seeds=5..6", "--keep-going"});
  for (const int seed : {5, 6}) EXPECT_EQ(read_file(model(seed)), "weights");
  EXPECT_THAT(sweep.out, Not(HasSubstr("the same file")));
}

TEST_F(Scratch, FileThatSeveralSeedsWrite_IsARemarkOfTheSweep) {
  scenario("[parameters]\nfile = \"./model\"\n");
  const auto file = (folder_ / "model").string();
  const auto sweep = job({"sweep", "saves.toml", "--seeds=1..3"});
  EXPECT_EQ(sweep.exit_code, 0);
  EXPECT_THAT(sweep.out, HasSubstr("remark: seeds 1, 2, 3 wrote to the same file, "));
  const auto json = nlohmann::json::parse(job({"sweep", "saves.toml", "--seeds=1..3", "--json"}).out);
  ASSERT_EQ(json["shared_files"].size(), 1u);
  EXPECT_EQ(std::filesystem::weakly_canonical(json["shared_files"][0]["file"].get<std::string>()),
            std::filesystem::weakly_canonical(file));
  EXPECT_EQ(json["shared_files"][0]["seeds"], (std::vector<int>{1, 2, 3}));
}

TEST_F(Scratch, FileThatSeedsOfSeveralShardsWrite_IsARemarkOfAllShards) {
  scenario("[parameters]\nfile = \"./model\"\n");
  const auto whole = nlohmann::json::parse(job({"sweep", "saves.toml", "--seeds=1..3", "--json"}).out);
  for (const auto* const shard : {"--shard=1/2", "--shard=2/2"}) job({"sweep", "saves.toml", "--seeds=1..3", shard});
  const auto merged = run_process(CLI_JOB, {"merge", "rehearse-out/saves", "--json"}, folder_);
  EXPECT_EQ(nlohmann::json::parse(merged.out).at("shared_files"), whole.at("shared_files"));
}

}  // namespace
}  // namespace rehearse::test
