// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string_view>

namespace rehearse::exec {

// The source files of which Rehearse's libraries are made, as "core/exec/call_site/symbolize.cpp": from the top of its
// tree, wherever that lay. The build writes the list (core/cmake/RehearseOwnSources.cmake).
std::span<const std::string_view> own_sources();

// The units of a unity build that those were compiled in, as "core/CMakeFiles/rehearse_exec.dir/Unity/unity_x_cxx.cxx":
// from the top of the build folder. Empty where each source was a unit.
std::span<const std::string_view> own_unity_units();

}  // namespace rehearse::exec
