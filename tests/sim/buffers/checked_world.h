// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

namespace rehearse::test {

inline WorldOptions checked(int ranks = 2) {
  WorldOptions options;
  options.ranks = ranks;
  options.check_buffers = true;
  options.check_sharing = true;
  return options;
}

inline Report run_checked(const World::Body& body, const WorldOptions& options = checked()) {
  return World(options).run(body);
}

inline bool says(const Report& report, const std::string& text) {
  return report.verdict == Verdict::check_failed && report.headline.find(text) != std::string::npos;
}

// A place as reports name it: "buffer_check_test.cpp:41".
inline std::string place(const char* file, int line) {
  const std::string path = file;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
}

}  // namespace rehearse::test
