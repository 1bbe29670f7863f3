// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "launched_job.h"

int main(int argc, char** argv) {
  if (const auto code = rehearse::test::run_as_rank(argc, argv)) return *code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
