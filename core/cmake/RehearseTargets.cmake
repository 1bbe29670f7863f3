# How libraries and executables are declared: one way for all, so that options are the same everywhere.
include("${CMAKE_CURRENT_LIST_DIR}/RehearseUnity.cmake")

# rehearse_add_rooms(<folder>...)
#   Calls add_subdirectory() for each folder that has a CMakeLists.txt. The next build picks up one that appears later.
function(rehearse_add_rooms)
  foreach(room IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/CMakeLists.txt")
    if(found)
      add_subdirectory(${room})
    endif()
  endforeach()
endfunction()

# rehearse_room(<library> [<source>...] [TORCH_FREE <source>...] [ALONE <source>...])
#   The whole CMakeLists.txt of a room: its sources belong to <library>. TORCH_FREE: sources that do not use LibTorch.
#   Without its precompiled header, their objects need no LibTorch symbol, so a program that uses nothing else of the
#   library starts without loading it. ALONE: sources that stay a unit of their own in a unity build. Use it for a file
#   that defines a function which LibTorch or libstdc++ also defines: the linker must be able to leave the file out.
function(rehearse_room library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TORCH_FREE;ALONE")
  if(NOT TARGET ${library})
    message(FATAL_ERROR "rehearse_room: there is no target '${library}'")
  endif()
  foreach(sources IN ITEMS arg_UNPARSED_ARGUMENTS arg_TORCH_FREE arg_ALONE)
    list(TRANSFORM ${sources} PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  endforeach()
  target_sources(${library} PRIVATE ${arg_UNPARSED_ARGUMENTS} ${arg_TORCH_FREE} ${arg_ALONE})
  set_property(TARGET ${library} APPEND PROPERTY REHEARSE_UNITED ${arg_UNPARSED_ARGUMENTS})
  if(arg_TORCH_FREE)
    file(RELATIVE_PATH room "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
    string(MAKE_C_IDENTIFIER "${room}" room)
    set_source_files_properties(${arg_TORCH_FREE} TARGET_DIRECTORY ${library} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    rehearse_unite(${library} ${room}_torch_free ${arg_TORCH_FREE} TORCH_FREE)
  endif()
endfunction()

# _rehearse_unite_rooms(<library>)
#   Forms units from the sources that the library's rooms have listed. Rooms share units, so that a room with two files
#   needs no unit of its own. TORCH_FREE sources of different rooms share none; otherwise a program would take in
#   sources of rooms that it does not use, and LibTorch with them.
function(_rehearse_unite_rooms library)
  get_target_property(sources ${library} REHEARSE_UNITED)
  if(sources)
    rehearse_unite(${library} ${library} ${sources})
  endif()
endfunction()

# rehearse_target_options(<target> [TORCH | FIBERS] [TEST])
#   Sets standard, warnings, optimisation and sanitizer for our own code. TORCH: use the precompiled header of LibTorch;
#   a source file that includes ATen and c10d then takes 3 s instead of about 13 s (g++ 12, -O2). FIBERS: use that of
#   Boost.Fiber. TEST: build with -Og in a release. A test's own lines run only a few times, and -O2 spent two thirds of
#   the build time on making them fast. -Og needs its own precompiled header, but it saves a third of the whole, ten
#   times what that header costs.
function(rehearse_target_options target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;FIBERS;TEST" "" "")
  set(pch rehearse_pch)
  set(optimization -O2)
  set(test "")
  if(arg_TEST AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT REHEARSE_SANITIZE)
    set(pch rehearse_test_pch)
    set(optimization -Og)
    set(test TEST)
    # GTest's target defines this, and without it no target could use the tests' precompiled header.
    target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)
  endif()
  if(arg_TORCH AND NOT target STREQUAL pch)
    _rehearse_add_pch(${pch} ${test})
    target_precompile_headers(${target} REUSE_FROM ${pch})
  elseif(arg_FIBERS AND NOT target STREQUAL "rehearse_fiber_pch")
    _rehearse_add_fiber_pch()
    target_precompile_headers(${target} REUSE_FROM rehearse_fiber_pch)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  # The libraries are also linked into the shared object that an interpreter preloads. It is loaded at the start of a
  # process, so its thread-locals may lie beside the executable's, where a switch finds them by one load.
  if(NOT arg_TEST)
    target_compile_options(${target} PRIVATE -fPIC -fno-semantic-interposition -ftls-model=initial-exec)
  endif()
  # -O2, because CMake's -O3 costs compile time and gains nothing measurable around LibTorch calls. -g1, because reports
  # name the line at which a rank waits; line tables cost no measurable compile time.
  target_compile_options(${target} PRIVATE -Wall -Wextra "$<$<CONFIG:Release>:${optimization};-g1>")
  # g++ collects garbage whenever its memory has doubled, and walks the precompiled header each time. Without that, a
  # unit compiles in 85 % of the time and takes 0.15 GB more (g++ 12).
  target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=4000000>")
  # Makes __FILE__, std::source_location and line tables name files from the top of the tree, so that a report is the
  # same wherever the tree lies (and gdb, started there, finds the files). ccache passes paths in the relative form.
  set(to_source "${PROJECT_SOURCE_DIR}")
  cmake_path(RELATIVE_PATH to_source BASE_DIRECTORY "${CMAKE_BINARY_DIR}")
  target_compile_options(${target} PRIVATE
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${to_source}/="
    "-ffile-prefix-map=${CMAKE_BINARY_DIR}=.")
  # Calls of c10d are by its older names, which every LibTorch has, and later ones deprecate.
  target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
  if(REHEARSE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${REHEARSE_SANITIZE} -fno-omit-frame-pointer)
    # This suffices for the sanitizers' reports, and a file compiles in two thirds of the time of RelWithDebInfo's -O2
    # -g (g++ 12).
    target_compile_options(${target} PRIVATE -O1 -g1)
    target_link_options(${target} PUBLIC -fsanitize=${REHEARSE_SANITIZE})
  endif()
endfunction()

# The precompiled header for everything that includes LibTorch, made once (25 s, 430 MB) and used by all. <target> is
# rehearse_pch, or rehearse_test_pch for targets with the options of tests. It holds only headers of LibTorch and, for
# tests, of GoogleTest. With std headers in it, a header of ours that forgets one would compile here and fail for a
# user. It leaves out torch/nn and torch/optim, which would double its cost. Files that need modules should include
# single ones (torch/nn/modules/linear.h: +5 s), not torch/nn.h (+13 s). Without the plugin, each unit takes 2.5 s more.
function(_rehearse_add_pch target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TEST" "" "")
  if(TARGET ${target})
    return()
  endif()
  _rehearse_add_pch_library(${target} LibTorch::torch_cpu)
  rehearse_target_options(${target} TORCH ${ARGN})
  if(arg_TEST)
    target_link_libraries(${target} PRIVATE GTest::gmock)
    target_precompile_headers(${target} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} PRIVATE
    <ATen/ATen.h>
    <torch/csrc/distributed/c10d/Backend.hpp>
    <torch/csrc/distributed/c10d/ProcessGroup.hpp>
    <torch/csrc/distributed/c10d/Store.hpp>
    <torch/csrc/distributed/c10d/Work.hpp>)
  _rehearse_find_instantiate_plugin()
  if(REHEARSE_INSTANTIATE_PLUGIN)
    target_compile_options(${target} PRIVATE "-fplugin=${REHEARSE_INSTANTIATE_PLUGIN}")
    target_precompile_headers(${target} PRIVATE "${PROJECT_BINARY_DIR}/pch/instantiate.h")
  endif()
endfunction()

# Sets REHEARSE_INSTANTIATE_PLUGIN to the plugin of instantiate_plugin.cpp, or to nothing if it does not compile here: it
# needs g++ and Debian's gcc-<version>-plugin-dev.
function(_rehearse_find_instantiate_plugin)
  if(DEFINED CACHE{REHEARSE_INSTANTIATE_PLUGIN})
    return()
  endif()
  set(plugin "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=plugin
                    OUTPUT_VARIABLE headers OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(plugin "${PROJECT_BINARY_DIR}/pch/instantiate.so")
    file(WRITE "${PROJECT_BINARY_DIR}/pch/instantiate.h" "#pragma rehearse instantiate\n")
    execute_process(
      COMMAND "${CMAKE_CXX_COMPILER}" -shared -fPIC -fno-rtti -O1 -w "-I${headers}/include"
              "${PROJECT_SOURCE_DIR}/core/cmake/instantiate_plugin.cpp" -o "${plugin}"
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(NOT status EQUAL 0)
      set(plugin "")
      message(STATUS "Units take 2.5 s more: there are no headers for plugins of ${CMAKE_CXX_COMPILER}")
    endif()
  endif()
  set(REHEARSE_INSTANTIATE_PLUGIN "${plugin}" CACHE INTERNAL "The plugin that makes precompiled headers hold more")
endfunction()

# The precompiled header for sources that include Boost.Fiber and no LibTorch. It takes 2 s and saves 1.5 s in each
# unit.
function(_rehearse_add_fiber_pch)
  if(TARGET rehearse_fiber_pch)
    return()
  endif()
  _rehearse_add_pch_library(rehearse_fiber_pch Boost::fiber fmt::fmt)
  rehearse_target_options(rehearse_fiber_pch FIBERS)
  target_precompile_headers(rehearse_fiber_pch PRIVATE
    <boost/fiber/algo/algorithm.hpp>
    <boost/fiber/context.hpp>
    <boost/fiber/fiber.hpp>
    <boost/fiber/operations.hpp>
    <boost/fiber/properties.hpp>
    <fmt/format.h>)
endfunction()

# The object library to which a precompiled header belongs; it needs one source file.
function(_rehearse_add_pch_library target)
  set(source "${PROJECT_BINARY_DIR}/pch/${target}.cpp")
  if(NOT EXISTS "${source}")
    file(WRITE "${source}" "// The precompiled header needs one source file to belong to.\n")
  endif()
  add_library(${target} OBJECT "${source}")
  target_link_libraries(${target} PRIVATE ${ARGN})
endfunction()

# rehearse_add_library(<name> EXPORT_AS <short>
#                      [ROOMS <folder>...] [SOURCES <file>...] [ALONE <file>...] [INCLUDE <folder>...]
#                      [LIBS <target>...] [PRIVATE_LIBS <target>...] [TORCH | FIBERS])
#   A static library rehearse_<short> with alias rehearse::<short>. ROOMS are folders below this one whose
#   CMakeLists.txt calls rehearse_room(<name> ...), where ALONE is explained. INCLUDE defaults to include/ (the public
#   headers). internal/, if it exists, holds <rehearse_internal/...>, which is not installed. Private headers of another
#   room are included with a path from the house, such as "exec/fiber/fiber.h". LIBS appear in public headers,
#   PRIVATE_LIBS in sources only. TORCH, FIBERS: see rehearse_target_options(). A library without any source is not
#   created. Public headers and the library are installed if REHEARSE_INSTALL is on.
function(rehearse_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;FIBERS" "EXPORT_AS" "ROOMS;SOURCES;ALONE;INCLUDE;LIBS;PRIVATE_LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rehearse_add_library(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_EXPORT_AS OR NOT "rehearse_${arg_EXPORT_AS}" STREQUAL "${name}")
    message(FATAL_ERROR "rehearse_add_library(${name}): EXPORT_AS must be the name without 'rehearse_'")
  endif()
  set(rooms "")
  foreach(room IN LISTS arg_ROOMS)
    file(GLOB found CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/CMakeLists.txt")
    if(found)
      list(APPEND rooms ${room})
    endif()
  endforeach()
  if(NOT rooms AND NOT arg_SOURCES)
    return()
  endif()

  add_library(${name} STATIC ${arg_SOURCES} ${arg_ALONE})
  rehearse_unite(${name} ${name} ${arg_SOURCES})
  add_library(rehearse::${arg_EXPORT_AS} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${arg_EXPORT_AS})
  if(NOT arg_INCLUDE)
    set(arg_INCLUDE include)
  endif()
  foreach(folder IN LISTS arg_INCLUDE)
    set(folder "${CMAKE_CURRENT_SOURCE_DIR}/${folder}")
    target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${folder}>")
    set_property(GLOBAL APPEND PROPERTY REHEARSE_INCLUDE_FOLDERS "${folder}")
  endforeach()
  # Headers that rooms and houses share, and that are not installed.
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/internal")
    target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/internal>")
  endif()
  target_include_directories(${name} PUBLIC "$<INSTALL_INTERFACE:include>"
                             PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${arg_LIBS} PRIVATE ${arg_PRIVATE_LIBS})
  set(options "")
  foreach(option IN ITEMS TORCH FIBERS)
    if(arg_${option})
      list(APPEND options ${option})
    endif()
  endforeach()
  rehearse_target_options(${name} ${options})
  set_property(GLOBAL APPEND PROPERTY REHEARSE_LIBRARIES ${name})
  foreach(room IN LISTS rooms)
    add_subdirectory(${room})
  endforeach()
  _rehearse_unite_rooms(${name})
endfunction()

# rehearse_add_executable(<name> SOURCES <file>... LIBS <target>... [TORCH] [TEST])
#   The interposed libc calls need nothing more: linkers export a symbol of the executable if a shared library on the
#   link line also defines it, and libc is always there (tried with bfd, gold, lld, mold). The linker takes in the
#   definitions in librehearse_exec.a because the executor refers to their table.
function(rehearse_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;TEST" "" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "rehearse_add_executable(${name}): give SOURCES and LIBS; unknown: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  add_executable(${name} ${arg_SOURCES})
  rehearse_unite(${name} ${name} ${arg_SOURCES})
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source "${source}" ABSOLUTE)
    set_property(GLOBAL APPEND PROPERTY REHEARSE_TEST_SOURCES "${source}")
  endforeach()
  set_property(GLOBAL APPEND PROPERTY REHEARSE_EXECUTABLES ${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  set(options "")
  foreach(option IN ITEMS TORCH TEST)
    if(arg_${option})
      list(APPEND options ${option})
    endif()
  endforeach()
  rehearse_target_options(${name} ${options})
endfunction()

# rehearse_add_example(<name> SOURCES <file>... LIBS <target>... [SCENARIO <file>] [REPORT <file> EXIT <code>] [REAL]
#                      [FULL])
#   A program under docs/examples. SCENARIO: a test example.<name> that runs `<name> run <file>`. REPORT: a test
#   example.<name>_report that runs <name>.toml and expects this exit code and the lines of <file>, as
#   docs/examples/expect_report.cmake reads them. REAL: a target <name>_real, the same program with the real mode, in
#   the folder real, for tests of label full. A simulation is built without the real mode, so that `./dev run` builds
#   only what it uses. FULL: the example and its tests belong to the label full, too. The target has the name of its
#   folder, so that `./dev run <scenario>` finds it.
function(rehearse_add_example name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "REAL;FULL" "SCENARIO;REPORT;EXIT" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR (DEFINED arg_REPORT AND NOT DEFINED arg_EXIT))
    message(FATAL_ERROR "rehearse_add_example(${name}): REPORT needs EXIT; unknown arguments: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  rehearse_add_executable(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} TORCH)
  if(arg_REAL AND TARGET rehearse_real)
    add_executable(${name}_real $<TARGET_OBJECTS:${name}>)
    target_link_libraries(${name}_real PRIVATE ${arg_LIBS} rehearse::real)
    set_target_properties(${name}_real PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
                          RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/real")
  endif()
  if(NOT REHEARSE_BUILD_TESTS)
    return()
  endif()
  if(TARGET ${name}_real)
    rehearse_build_in_full(${name}_real)
  endif()
  set(labels sim)
  if(arg_FULL)
    rehearse_build_in_full(${name})
    list(APPEND labels full)
  endif()
  if(arg_SCENARIO)
    _rehearse_add_example_test(${name} "${labels}" "${arg_SCENARIO}" ${name} run "${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCENARIO}")
  endif()
  if(arg_REPORT)
    _rehearse_add_example_test(${name}_report "${labels}" "${name}.toml;${arg_REPORT}"
      "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:${name}>" "-DSCENARIO=${CMAKE_CURRENT_SOURCE_DIR}/${name}.toml"
      "-DEXPECTED=${CMAKE_CURRENT_SOURCE_DIR}/${arg_REPORT}" -DEXIT_CODE=${arg_EXIT}
      -P "${PROJECT_SOURCE_DIR}/docs/examples/expect_report.cmake")
  endif()
endfunction()

# _rehearse_add_example_test(<name> <labels> <files of this folder that it reads> <command>...)
function(_rehearse_add_example_test name labels files)
  foreach(file IN LISTS files)
    if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
      message(FATAL_ERROR "rehearse_add_example(): there is no ${file} in ${CMAKE_CURRENT_SOURCE_DIR}")
    endif()
  endforeach()
  add_test(NAME example.${name} COMMAND ${ARGN} WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  set_tests_properties(example.${name} PROPERTIES LABELS "${labels}" TIMEOUT ${REHEARSE_TEST_TIMEOUT})
endfunction()

# rehearse_add_bench(<name> SOURCES <file>... LIBS <target>... [TORCH] [OWN_MAIN] [SMOKE <filter>])
#   A Google Benchmark program, without BENCHMARK_MAIN() if OWN_MAIN is given. Only `./dev bench`, which runs all
#   benchmarks, builds it. SMOKE: the default build includes it, and the test bench.<name> runs the cases that match the
#   filter.
function(rehearse_add_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;OWN_MAIN" "SMOKE" "SOURCES;LIBS")
  set(torch "")
  if(arg_TORCH)
    set(torch TORCH)
  endif()
  set(main benchmark::benchmark_main)
  if(arg_OWN_MAIN)
    set(main benchmark::benchmark)
  endif()
  find_package(benchmark REQUIRED)
  rehearse_add_executable(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} ${main} ${torch})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/core" "${PROJECT_SOURCE_DIR}/fakes"
                             "${PROJECT_SOURCE_DIR}/sim" "${PROJECT_SOURCE_DIR}/tests")
  set_property(GLOBAL APPEND PROPERTY REHEARSE_BENCHMARKS ${name})
  if(NOT arg_SMOKE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  add_test(NAME bench.${name} COMMAND ${name} "--benchmark_filter=${arg_SMOKE}" --benchmark_min_time=0.01)
  # A benchmark exits with 0 even if no case matches the filter, and even if a case fails.
  set_tests_properties(bench.${name} PROPERTIES LABELS unit TIMEOUT ${REHEARSE_TEST_TIMEOUT}
                       FAIL_REGULAR_EXPRESSION "Failed to match any benchmarks;ERROR OCCURRED")
endfunction()

# rehearse_finish_benchmarks()
#   The target rehearse_benchmarks builds all benchmarks; benchmarks.txt in the build folder lists their programs.
function(rehearse_finish_benchmarks)
  get_property(names GLOBAL PROPERTY REHEARSE_BENCHMARKS)
  if(NOT names)
    return()
  endif()
  add_custom_target(rehearse_benchmarks DEPENDS ${names})
  set(programs "")
  foreach(name IN LISTS names)
    string(APPEND programs "$<TARGET_FILE:${name}>\n")
  endforeach()
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/benchmarks.txt" CONTENT "${programs}")
endfunction()
