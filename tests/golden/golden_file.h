// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace rehearse::golden {

// Compares `text` with the named file of the tests' folder. If REHEARSE_UPDATE_GOLDEN is set, writes the file instead.
inline void expect_golden(const std::string& text, const std::string& file) {
  const std::string path = std::string(REHEARSE_GOLDEN_FOLDER "/") + file;
  if (std::getenv("REHEARSE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path << " does not exist; REHEARSE_UPDATE_GOLDEN=1 writes it";
  std::ostringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(text, expected.str()) << "differs from " << path;
}

}  // namespace rehearse::golden
