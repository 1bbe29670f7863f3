# How tests are declared.
include(GoogleTest)

set(REHEARSE_TEST_LABELS unit sim golden determinism install lint)

# rehearse_add_test(NAME <name> SOURCES <file>... LIBS <target>... LABELS <label>...
#                   [TORCH] [OWN_MAIN])
#   One GoogleTest binary; every TEST() in it becomes a ctest case, which has a minute. LABELS are one or more of
#   unit sim golden determinism install lint. TORCH: the sources include LibTorch. GTest::gmock is always linked,
#   GTest::gmock_main too unless OWN_MAIN.
#   Every .cpp below tests/ must be named in a CMakeLists.txt; see rehearse_check_test_sources().
function(rehearse_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH;OWN_MAIN" "NAME" "SOURCES;LIBS;LABELS")
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
  rehearse_add_executable(${arg_NAME} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} GTest::gmock ${main} ${torch})
  if(NOT TARGET ${arg_NAME})
    return()
  endif()
  # Tests may look at private headers: "exec/fiber.h" under core/, and so on.
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/core" "${PROJECT_SOURCE_DIR}/fakes"
                             "${PROJECT_SOURCE_DIR}/sim" "${PROJECT_SOURCE_DIR}/tests")
  # PRE_TEST: listing the cases at build time would start every LibTorch binary in each build.
  gtest_discover_tests(${arg_NAME} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 60)
endfunction()

# rehearse_check_test_sources(<folder> [EXCEPT <regex>])
#   Stops when a .cpp below <folder> was given to no rehearse_add_*() call: such a test would silently never run.
#   EXCEPT: paths, relative to <folder>, that are built in another way.
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
