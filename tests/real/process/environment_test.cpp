// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/job/runner.h>

#include "process/process_check_options.h"
#include "process/process_rendezvous.h"

// Contract: the environment says where processes meet and how their calls are checked. A value that makes no sense is
// refused with the variable's name.
namespace rehearse::real {
namespace {

class ProcessEnvironment : public ::testing::Test {
 protected:
  ~ProcessEnvironment() override {
    for (const auto& name : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const char* value) {
    setenv(name.c_str(), value, 1);
    set_.push_back(name);
  }
  template <class Call>
  static std::string refused(const Call& call) {
    try {
      call();
      return "nothing was thrown";
    } catch (const RunnerUnavailable& error) {
      return error.what();
    }
  }

  const LaunchedProcess process_{1, 2, 0, 0, "RANK"};

 private:
  std::vector<std::string> set_;
};

TEST_F(ProcessEnvironment, MeetingPlace_ComesFromTheVariables) {
  set("MASTER_ADDR", "node7");
  set("MASTER_PORT", "29511");
  const auto place = store_address(process_);
  EXPECT_EQ(place.host, "node7");
  EXPECT_EQ(place.port, 29511);
  EXPECT_FALSE(place.is_served);
  EXPECT_EQ(place.prefix, "rehearse/attempt_0");
}

TEST_F(ProcessEnvironment, StoreOfTorchrunsAgent_IsServedByNoRank) {
  set("MASTER_ADDR", "localhost");
  set("MASTER_PORT", "1");
  set("TORCHELASTIC_USE_AGENT_STORE", "True");
  set("TORCHELASTIC_RESTART_COUNT", "3");
  const auto place = store_address(process_);
  EXPECT_TRUE(place.is_served);
  EXPECT_EQ(place.prefix, "rehearse/attempt_3");
}

TEST_F(ProcessEnvironment, MissingOrWrongPlace_IsNamed) {
  const auto place = [this] { store_address(process_); };
  EXPECT_EQ(refused(place),
            "the environment has RANK and no MASTER_ADDR: set it to the host of rank 0, for all ranks, and MASTER_PORT "
            "to a free port of that host");
  set("MASTER_ADDR", "node7");
  EXPECT_NE(refused(place).find("MASTER_PORT is \"\""), std::string::npos);
  set("MASTER_PORT", "70000");
  EXPECT_NE(refused(place).find("MASTER_PORT is \"70000\""), std::string::npos);
}

TEST_F(ProcessEnvironment, Checks_AreThoseOfTheVariables) {
  EXPECT_TRUE(check_options().calls);
  EXPECT_EQ(check_options().check_timeout, std::chrono::seconds(10));
  set("REHEARSE_CHECKS", "0");
  set("REHEARSE_CHECK_TIMEOUT", "2.5");
  EXPECT_FALSE(check_options().calls);
  EXPECT_EQ(check_options().check_timeout, std::chrono::milliseconds(2500));
  set("REHEARSE_CHECKS", "yes");
  EXPECT_NE(refused([] { check_options(); }).find("REHEARSE_CHECKS is \"yes\""), std::string::npos);
  set("REHEARSE_CHECKS", "1");
  set("REHEARSE_CHECK_TIMEOUT", "soon");
  EXPECT_NE(refused([] { check_options(); }).find("REHEARSE_CHECK_TIMEOUT is \"soon\""), std::string::npos);
}

}  // namespace
}  // namespace rehearse::real
