// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string_view>

namespace rehearse::exec {

// The source files of Rehearse's libraries, as "core/exec/call_site/symbolize.cpp": relative to the top of the source
// tree. The build writes the list (core/cmake/RehearseOwnSources.cmake).
std::span<const std::string_view> own_sources();

// The units of a unity build of these sources, as "core/CMakeFiles/rehearse_exec.dir/Unity/unity_x_cxx.cxx": relative
// to the top of the build folder. Empty if each source was compiled alone.
std::span<const std::string_view> own_unity_units();

}  // namespace rehearse::exec
