// SPDX-License-Identifier: BSD-3-Clause
// A program written for torchrun finds its rank in the environment.
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class LaunchersEnvironment : public Worlds {};
INSTANTIATE_TEST_SUITE_P(Sizes, LaunchersEnvironment,
                         ::testing::Combine(::testing::Values(2, 3, 8), ::testing::Values(1, 2, 3)), world_name);

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST_P(LaunchersEnvironment, OfARank_IsWhatTorchrunSets) {
  auto w = world();
  const auto outcome = w.run([this](int rank) {
    const char* const name = std::getenv("RANK");
    ASSERT_NE(name, nullptr);
    this_rank::yield();
    EXPECT_EQ(name, std::to_string(rank));
    EXPECT_EQ(std::string(std::getenv("LOCAL_RANK")), std::to_string(rank));
    EXPECT_EQ(std::string(::secure_getenv("WORLD_SIZE")), std::to_string(ranks()));
    std::thread([this] { EXPECT_EQ(std::string(std::getenv("LOCAL_WORLD_SIZE")), std::to_string(ranks())); }).join();
    EXPECT_EQ(std::getenv("RANK"), name);
    EXPECT_EQ(std::getenv("REHEARSE_NO_SUCH_VARIABLE"), nullptr);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
    EXPECT_EQ(std::getenv(name), nullptr) << name;
  }
}

TEST_P(LaunchersEnvironment, WhatTheProcessSets_Counts) {
  auto w = world();
  const Variable variable("WORLD_SIZE", "1024");
  const auto outcome = w.run([](int rank) {
    EXPECT_STREQ(std::getenv("WORLD_SIZE"), "1024");
    EXPECT_EQ(std::string(std::getenv("RANK")), std::to_string(rank));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
