// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/launched.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/job/runner.h>

// Contract: a process learns its rank from the variables of torchrun, mpirun and srun. It refuses values that make no
// sense, and names the variable.
namespace rehearse {
namespace {

class Launched : public ::testing::Test {
 protected:
  Launched() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_NTASKS",
                             "SLURM_LOCALID", "SLURM_STEP_ID"}) {
      unsetenv(name);
    }
  }
  ~Launched() override {
    for (const auto& name : set_) unsetenv(name.c_str());
  }

  void set(std::string name, const char* value) {
    setenv(name.c_str(), value, 1);
    set_.push_back(std::move(name));
  }

  static std::string refused() {
    try {
      launched_process();
      return "nothing was thrown";
    } catch (const RunnerUnavailable& error) {
      return error.what();
    }
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(Launched, WithoutALauncher_IsAProcessAlone) { EXPECT_FALSE(launched_process().has_value()); }

TEST_F(Launched, ByTorchrun_HasItsVariables) {
  set("RANK", "3");
  set("WORLD_SIZE", "8");
  set("LOCAL_RANK", "1");
  const auto process = launched_process();
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->rank, 3);
  EXPECT_EQ(process->size, 8);
  EXPECT_EQ(process->local_rank, 1);
  EXPECT_EQ(process->rank_variable, "RANK");
}

TEST_F(Launched, ByMpirun_HasItsVariables) {
  set("OMPI_COMM_WORLD_RANK", "2");
  set("OMPI_COMM_WORLD_SIZE", "4");
  const auto process = launched_process();
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->rank, 2);
  EXPECT_EQ(process->size, 4);
  EXPECT_EQ(process->local_rank, 0);
}

TEST_F(Launched, InABatchScriptOfSlurms_IsAProcessAloneAndInItsStepsOneOfSeveral) {
  set("SLURM_PROCID", "1");
  set("SLURM_NTASKS", "2");
  set("SLURM_LOCALID", "1");
  EXPECT_FALSE(launched_process().has_value());
  set("SLURM_STEP_ID", "0");
  const auto process = launched_process();
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->rank, 1);
  EXPECT_EQ(process->local_rank, 1);
}

TEST_F(Launched, VariablesThatDoNotFit_AreNamed) {
  set("RANK", "2");
  EXPECT_EQ(refused(), "the environment has RANK and no WORLD_SIZE: both say which process of a job this is");
  set("WORLD_SIZE", "2");
  EXPECT_EQ(refused(), "RANK is \"2\" in the environment; it takes an integer from 0 to 1");
  set("WORLD_SIZE", "two");
  EXPECT_EQ(refused(), "WORLD_SIZE is \"two\" in the environment; it takes an integer from 1 to 65536");
}

}  // namespace
}  // namespace rehearse
