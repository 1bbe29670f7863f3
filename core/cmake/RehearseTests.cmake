# How tests are declared.

# No test depends on how busy the machine is; the timeout is for tests that hang.
set(REHEARSE_TEST_TIMEOUT 300)
if(REHEARSE_SANITIZE)
  set(REHEARSE_TEST_TIMEOUT 1800)
endif()
set(REHEARSE_TEST_LABELS unit sim golden determinism install lint full slow)

# ./dev test --full and --slow build this target, too: the programs of tests that ./dev test leaves out.
add_custom_target(rehearse_full)

# rehearse_add_test_helpers(<name> SOURCES <file>... LIBS <target>... [TORCH])
#   A static library of sources that several tests or benchmarks need, so that each source is compiled once. Programs
#   name it under LIBS and also get its LIBS; its include paths are those of a test. It is built when a program that
#   links it is. Do not put sources with tests here, because the linker would leave them out.
function(rehearse_add_test_helpers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "rehearse_add_test_helpers(${name}): give SOURCES; unknown: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${arg_SOURCES})
  rehearse_unite(${name} ${name} ${arg_SOURCES})
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    set_property(GLOBAL APPEND PROPERTY REHEARSE_TEST_SOURCES "${source}")
  endforeach()
  target_link_libraries(${name} PUBLIC ${arg_LIBS})
  _rehearse_add_test_includes(${name})
  set(torch "")
  if(arg_TORCH)
    set(torch TORCH)
  endif()
  rehearse_target_options(${name} ${torch} TEST)
endfunction()

# Tests may include private headers, such as "exec/fiber/fiber.h" of core/.
function(_rehearse_add_test_includes target)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/core" "${PROJECT_SOURCE_DIR}/fakes"
                             "${PROJECT_SOURCE_DIR}/real" "${PROJECT_SOURCE_DIR}/sim" "${PROJECT_SOURCE_DIR}/tests")
endfunction()

# rehearse_add_test(NAME <name> SOURCES <file>... LIBS <target>... LABELS <label>...
#                   [TORCH] [OWN_MAIN] [PARTS <number>] [FULL <filter>])
#   One GoogleTest binary and one ctest case, <name>, which runs all its tests in one process, because starting LibTorch
#   takes longer than most of them. Its output names the tests that fail. PARTS: GoogleTest distributes the tests over
#   this number of cases, <name>.1 and on, which can run side by side; for a binary that takes longer than half a
#   minute. LABELS are one or more of unit sim golden determinism install lint, and `full` or `slow` for what ./dev test
#   neither builds nor runs (CONTRIBUTING says what belongs there). TORCH: the sources include LibTorch. The test always
#   links GTest::gmock, and also GTest::gmock_main unless OWN_MAIN is given. If a test needs its own process, it starts
#   one, as tests/cli/process.h does. FULL: a filter of GoogleTest; the tests that match it are the ctest case
#   <name>.full, of label full.
#   Every .cpp below tests/ must be named in a CMakeLists.txt; see rehearse_check_test_sources().
function(rehearse_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH;OWN_MAIN" "NAME;PARTS;FULL" "SOURCES;LIBS;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rehearse_add_test(${arg_NAME}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(needed IN ITEMS NAME SOURCES LIBS LABELS)
    if(NOT arg_${needed})
      message(FATAL_ERROR "rehearse_add_test(${arg_NAME}): ${needed} is missing")
    endif()
  endforeach()
  foreach(label IN LISTS arg_LABELS)
    if(NOT label IN_LIST REHEARSE_TEST_LABELS)
      message(FATAL_ERROR "rehearse_add_test(${arg_NAME}): label '${label}' is not one of: ${REHEARSE_TEST_LABELS}")
    endif()
  endforeach()

  set(torch "")
  if(arg_TORCH)
    set(torch TORCH)
  endif()
  set(main GTest::gmock_main)
  if(arg_OWN_MAIN)
    set(main "")
  endif()
  rehearse_add_executable(${arg_NAME} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} GTest::gmock ${main} ${torch} TEST)
  if(NOT TARGET ${arg_NAME})
    return()
  endif()
  _rehearse_add_test_includes(${arg_NAME})
  if("full" IN_LIST arg_LABELS OR "slow" IN_LIST arg_LABELS)
    rehearse_build_in_full(${arg_NAME})
  endif()
  set(filter "")
  if(arg_FULL)
    set(filter "GTEST_FILTER=-${arg_FULL}")
    _rehearse_add_test_case(${arg_NAME}.full ${arg_NAME} "${arg_LABELS};full" "GTEST_FILTER=${arg_FULL}")
  endif()
  if(NOT arg_PARTS)
    _rehearse_add_test_case(${arg_NAME} ${arg_NAME} "${arg_LABELS}" "${filter}")
    return()
  endif()
  foreach(part RANGE 1 ${arg_PARTS})
    math(EXPR index "${part} - 1")
    _rehearse_add_test_case(${arg_NAME}.${part} ${arg_NAME} "${arg_LABELS}"
                            "${filter};GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index}")
    # Start long ones first, because the last one to start decides when all have ended.
    set_tests_properties(${arg_NAME}.${part} PROPERTIES COST 10)
  endforeach()
endfunction()

# rehearse_build_in_full(<target>...)
#   These targets serve only tests of the labels full and slow.
function(rehearse_build_in_full)
  set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(rehearse_full ${ARGN})
endfunction()

file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tmp")
function(_rehearse_add_test_case name program labels environment)
  add_test(NAME ${name} COMMAND ${program})
  # Each build has its own folder, so that two builds can be tested at the same time.
  list(APPEND environment "TEST_TMPDIR=${PROJECT_BINARY_DIR}/tmp")
  # With this seed, RapidCheck draws the same values in each run: only a change may decide whether a test passes, not
  # chance. A program that is started by hand draws other values each time.
  list(APPEND environment "RC_PARAMS=seed=1")
  # Outside of a world, LibTorch's threads spin while they wait for each other. Two programs on two cores then take five
  # times as long as one.
  list(APPEND environment "OMP_WAIT_POLICY=passive")
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" ENVIRONMENT "${environment}"
                       TIMEOUT ${REHEARSE_TEST_TIMEOUT})
endfunction()

# rehearse_check_test_sources(<folder> [EXCEPT <regex>])
#   Stops if no rehearse_add_*() call names a .cpp below <folder>: such a test would silently never run. EXCEPT: paths,
#   relative to <folder>, that are built in another way.
function(rehearse_check_test_sources folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCEPT" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  get_property(registered GLOBAL PROPERTY REHEARSE_TEST_SOURCES)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name "${folder}" "${source}")
    if(NOT source IN_LIST registered AND NOT (arg_EXCEPT AND name MATCHES "${arg_EXCEPT}"))
      message(FATAL_ERROR
              "${source} is not registered: name it in rehearse_add_test() in the CMakeLists.txt of its folder")
    endif()
  endforeach()
endfunction()
