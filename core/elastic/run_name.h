// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace rehearse::elastic {

// Names for the objects of a rank's n-th call of run(): "round 3", and for the second call "round 3 of run 2". Runs
// share a store, so the names must differ.
inline std::string name_in_run(int run, std::string_view name) {
  return run == 1 ? std::string(name) : fmt::format("{} of run {}", name, run);
}

}  // namespace rehearse::elastic
