# SPDX-License-Identifier: BSD-3-Clause
# cmake -DOUTPUT=<file.cpp> -DSKELETON=<file> "-DSTYLES=<file>;..." "-DSCRIPTS=<file>;..." -P embed_assets.cmake
# Writes the definitions of page_assets.h. A literal holds at most 16 KiB, because compilers may limit its length.

function(append_literals result)
  set(text "")
  foreach(file IN LISTS ARGN)
    file(READ "${file}" part)
    string(APPEND text "${part}")
  endforeach()
  string(FIND "${text}" ")asset\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${ARGN}: )asset\" would end the literal that holds the file")
  endif()
  set(literals "")
  string(LENGTH "${text}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 16384 part)
    string(APPEND literals "\n      R\"asset(${part})asset\"")
    math(EXPR at "${at} + 16384")
  endwhile()
  set(${result} "${literals}" PARENT_SCOPE)
endfunction()

append_literals(skeleton "${SKELETON}")
append_literals(style ${STYLES})
append_literals(script ${SCRIPTS})
file(WRITE "${OUTPUT}" "// SPDX-License-Identifier: BSD-3-Clause
#include \"report/page/page_assets.h\"

namespace rehearse::sim::page {

std::string_view skeleton() {
  return ${skeleton};
}

std::string_view style() {
  return ${style};
}

std::string_view script() {
  return ${script};
}

}  // namespace rehearse::sim::page
")
