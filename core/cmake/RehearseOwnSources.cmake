# What a report must not take for the user's: the names of our own source files, compiled into rehearse_exec.

# rehearse_write_own_sources(<library>...)
#   Gives rehearse_exec a source file that lists the sources of all the libraries, named from the top of the tree. Called
#   once all rooms are known; a source added later is in it after the next configuration.
function(rehearse_write_own_sources)
  set(names "")
  foreach(library IN LISTS ARGN)
    get_target_property(sources ${library} SOURCES)
    get_target_property(folder ${library} SOURCE_DIR)
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" NORMALIZE)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      string(APPEND names "    \"${source}\",\n")
    endforeach()
  endforeach()
  set(file "${PROJECT_BINARY_DIR}/own_sources.cpp")
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT [=[
// SPDX-License-Identifier: BSD-3-Clause
#include "exec/call_site/own_sources.h"

namespace rehearse::exec {
namespace {
constexpr std::string_view kSources[] = {
@names@};
}  // namespace

std::span<const std::string_view> own_sources() { return kSources; }
}  // namespace rehearse::exec
]=])
  target_sources(rehearse_exec PRIVATE "${file}")
endfunction()
