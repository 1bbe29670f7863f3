# cmake -DPROGRAM=<command> -DSCENARIO=<file> -DEXIT_CODE=<n> -DEXPECTED=<file> [-DOPTIONS=<list>] -P expect_report.cmake
#   Runs a scenario that is meant to fail. Checks its exit code, and that it printed each line of EXPECTED (except empty
#   ones and those that begin with '#'), in that order. In such a line <...> stands for anything but the end of the
#   line.
execute_process(COMMAND "${PROGRAM}" run "${SCENARIO}" ${OPTIONS} RESULT_VARIABLE code OUTPUT_VARIABLE printed ERROR_VARIABLE errors)
if(NOT code STREQUAL EXIT_CODE)
  message(FATAL_ERROR "exit code ${code}, expected ${EXIT_CODE}\n${printed}${errors}")
endif()
# foreach() cannot read the lines, because lists interpret their semicolons and brackets.
file(READ "${EXPECTED}" lines)
set(rest "${printed}")
while(lines MATCHES "^([^\n]*)\n")
  set(line "${CMAKE_MATCH_1}")
  string(LENGTH "${CMAKE_MATCH_0}" length)
  string(SUBSTRING "${lines}" ${length} -1 lines)
  if(line MATCHES "^(#.*)?$")
    continue()
  endif()
  string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" pattern "${line}")
  string(REGEX REPLACE "<[^<>]*>" "[^\n]*" pattern "${pattern}")
  if(NOT rest MATCHES "${pattern}")
    message(FATAL_ERROR "not printed (or not in this place): ${line}\n${printed}${errors}")
  endif()
  set(found "${CMAKE_MATCH_0}")
  string(FIND "${rest}" "${found}" at)
  string(LENGTH "${found}" length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${rest}" ${at} -1 rest)
endwhile()
