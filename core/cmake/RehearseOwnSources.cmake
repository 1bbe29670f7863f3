# The names of our own source files, compiled into rehearse_exec: a report must not take them for the user's.

# rehearse_write_own_sources(<library>...)
#   Gives rehearse_exec a source file that lists the sources of all the libraries, with paths from the top of the tree,
#   and the units of a unity build, with paths from the top of the build folder. Call it once all rooms are known. The
#   list contains a later source only after the next configuration.
function(rehearse_write_own_sources)
  set(sources "")
  set(units "")
  foreach(library IN LISTS ARGN)
    get_target_property(files ${library} SOURCES)
    get_target_property(folder ${library} SOURCE_DIR)
    foreach(file IN LISTS files)
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${folder}" NORMALIZE)
      _rehearse_append_name(sources "${file}" "${PROJECT_SOURCE_DIR}")
    endforeach()
    get_property(files TARGET ${library} PROPERTY REHEARSE_UNITS)
    foreach(file IN LISTS files)
      _rehearse_append_name(units "${file}" "${CMAKE_BINARY_DIR}")
    endforeach()
  endforeach()
  set(file "${PROJECT_BINARY_DIR}/own_sources.cpp")
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT [=[
// SPDX-License-Identifier: BSD-3-Clause
#include "exec/call_site/own_sources.h"

#include <vector>

namespace rehearse::exec {

std::span<const std::string_view> own_sources() {
  static const std::vector<std::string_view> names = {
@sources@  };
  return names;
}

std::span<const std::string_view> own_unity_units() {
  static const std::vector<std::string_view> names = {
@units@  };
  return names;
}

}  // namespace rehearse::exec
]=])
  target_sources(rehearse_exec PRIVATE "${file}")
endfunction()

function(_rehearse_append_name list file folder)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${folder}")
  set(${list} "${${list}}      \"${file}\",\n" PARENT_SCOPE)
endfunction()
