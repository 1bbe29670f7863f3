// SPDX-License-Identifier: BSD-3-Clause
// How the tests of docs/SEEDS.md read its rows, and their errors for rows that they cannot read.
#include "core/compile/seeds/seed_run.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace rehearse::compiler {
namespace {

const std::string kForm =
    "A run is: ranks or 'fake' / cap ('25 MB') or '-' / pieces / compiles ('1, 0' or '1, 0; 1, 1')";

std::string page_with(const std::string& runs) {
  return "| test | state | runs | model |\n|---|---|---|---|\n| `test_b` | planned: more | | |\n"
         "| `test_a` | test: `Suite.test_a`, `SuiteAtSize.test_a` | " +
         runs + " | Toy |\n";
}

std::string error_of(const std::string& runs, const std::string& test = "Suite.test_a") {
  try {
    seed_run_of(page_with(runs), test);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SeedRun, EachTestOfARowHasItsOwn) {
  const std::string page = page_with("fake / 0.3 MB / 3 / 1 <br> 1 2 8 / - / 1 / 1, 0, 1; 1, 1, 0");
  EXPECT_EQ(seed_run_of(page, "Suite.test_a"), (SeedRun{{}, 0.3, 3, {1}, {1}}));
  EXPECT_EQ(seed_run_of(page, "SuiteAtSize.test_a"), (SeedRun{{1, 2, 8}, std::nullopt, 1, {1, 0, 1}, {1, 1, 0}}));
}

TEST(SeedRun, ATestInNoRow_IsAnError) {
  EXPECT_EQ(error_of("fake / - / 1 / 1 <br> 2 / - / 1 / 1", "Suite.test_b"),
            "no row of SEEDS.md names Suite.test_b: name it, and what it runs with");
}

TEST(SeedRun, ARunForEachTest) {
  EXPECT_EQ(error_of("fake / - / 1 / 1"),
            "SEEDS.md lists 1 runs in the row of Suite.test_a, and 2 tests: each test needs one");
}

TEST(SeedRun, WhatCannotBeRead_IsNamedWithTheForm) {
  const auto error = [](const std::string& run) { return error_of(run + " <br> 2 / - / 1 / 1"); };
  const auto expected = [](const std::string& run, const std::string& why) {
    return "SEEDS.md has the run '" + run + "' for Suite.test_a: " + why + ". " + kForm;
  };
  EXPECT_EQ(error("2 / 25 MB / 1"), expected("2 / 25 MB / 1", "it has 3 fields"));
  EXPECT_EQ(error("two / - / 1 / 1"), expected("two / - / 1 / 1", "'two' is not a number"));
  EXPECT_EQ(error("2 / 25 / 1 / 1"), expected("2 / 25 / 1 / 1", "'25' is not a size of buckets"));
  EXPECT_EQ(error("2 / 0 MB / 1 / 1"), expected("2 / 0 MB / 1 / 1", "'0 MB' is not a size of buckets"));
  EXPECT_EQ(error("2 / - / 1 / 1,"), expected("2 / - / 1 / 1,", "'' is not a number"));
  EXPECT_EQ(error("2 / - / 1 / 1; 1; 1"), expected("2 / - / 1 / 1; 1; 1", "it has compiles of 3 kinds of ranks"));
}

}  // namespace
}  // namespace rehearse::compiler
