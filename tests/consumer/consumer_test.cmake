# PART package installs BUILD_DIR below WORK_DIR and checks what was exported. Each other PART configures CONSUMER_DIR
# against that installation. All but `versions` also build and run an executable.
cmake_minimum_required(VERSION 3.25)
set(prefix "${WORK_DIR}/prefix")
set(build "${WORK_DIR}/build_${PART}")

function(run title)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(STATUS "${title}: exit ${status}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${title} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(part_package)
  file(REMOVE_RECURSE "${prefix}")
  run("install" "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")
  # A package that contains a path of the machine that built it works nowhere else.
  file(GLOB_RECURSE exported "${prefix}/*.cmake")
  if(NOT exported)
    message(FATAL_ERROR "no CMake package was installed below ${prefix}")
  endif()
  foreach(file IN LISTS exported)
    file(READ "${file}" text)
    foreach(path IN ITEMS "${SOURCE_DIR}" "${BUILD_DIR}" "${LIBTORCH_DIR}" "/usr/lib/" "/usr/include" "/usr/local" ".so")
      string(FIND "${text}" "${path}" found)
      # FindLibTorch.cmake names the two libraries relative to the folder that it finds, which is all right.
      if(NOT found EQUAL -1 AND NOT (path STREQUAL ".so" AND file MATCHES "FindLibTorch.cmake$"))
        message(FATAL_ERROR "${file} contains ${path}")
      endif()
    endforeach()
  endforeach()
endfunction()

# The command that configures the consumer; cases add further options.
set(consumer "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DREHEARSE_LIBTORCH_DIR=${LIBTORCH_DIR}" "-DCMAKE_BUILD_TYPE=${CONFIG}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    "-DPART=${PART}")

# Before 1.0, a minor version may break the promises of an earlier one.
function(part_versions)
  file(REMOVE_RECURSE "${build}")
  foreach(version IN ITEMS "" 0.1 ${VERSION})
    run("version '${version}'" ${consumer} "-DVERSION=${version}")
    string(FIND "${output}" "-- rehearse ${VERSION} found\n" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "version '${version}' gave another package:\n${output}")
    endif()
  endforeach()
  foreach(version IN ITEMS 99 0.2 0.0.9)
    execute_process(COMMAND ${consumer} "-DVERSION=${version}"
                    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX REPLACE "[ \n]+" " " output "${output}")
    if(status EQUAL 0)
      message(FATAL_ERROR "version ${version} was accepted:\n${output}")
    endif()
    foreach(words IN ITEMS
            "package \"rehearse\" that is compatible with requested version \"${version}\""
            "rehearseConfig.cmake, version: ${VERSION}")
      string(FIND "${output}" "${words}" found)
      if(found EQUAL -1)
        message(FATAL_ERROR "version ${version}: the error does not say '${words}':\n${output}")
      endif()
    endforeach()
  endforeach()
  expect_unknown_component()
endfunction()

# Asking for a component that does not exist must be an error that names it.
function(expect_unknown_component)
  execute_process(COMMAND ${consumer} -DPART=unknown -DCOMPONENT=compiler
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "there is no component 'compiler'; this rehearse has: exec core collectives" found)
  if(status EQUAL 0 OR found EQUAL -1)
    message(FATAL_ERROR "COMPONENTS compiler: exit ${status}:\n${output}")
  endif()
endfunction()

function(build_executable)
  file(REMOVE_RECURSE "${build}")
  run("configure" ${consumer})
  run("build" "${CMAKE_COMMAND}" --build "${build}")
endfunction()

# The executable must export every libc function that librehearse_exec.a interposes. Otherwise LibTorch would call
# libc's and block the thread. (C++ symbols and our own C names have no libc counterpart. __kmpc_fork_call is exported
# only if the program is linked with LLVM's libomp, which this one is not.)
function(expect_interposed)
  file(GLOB_RECURSE exec_library "${prefix}/*/librehearse_exec.a")
  run("interposed" "${NM}" --defined-only "${exec_library}")
  string(REGEX MATCHALL " T [^\n]+" interposed "${output}")
  list(FILTER interposed EXCLUDE REGEX "^ T (_Z|rehearse|__kmpc_)")
  list(LENGTH interposed count)
  if(count LESS 10)
    message(FATAL_ERROR "only ${count} interposed functions in ${exec_library}: ${interposed}")
  endif()
  run("exported" "${NM}" -D --defined-only "${build}/${PART}")
  foreach(symbol IN LISTS interposed)
    string(FIND "${output}\n" "${symbol}\n" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "the consumer's executable does not export${symbol}")
    endif()
  endforeach()
endfunction()

# run_executable(<pattern> <argument>...): requires that it prints the pattern.
function(run_executable pattern)
  run("run" "${build}/${PART}" ${ARGN})
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "not printed: ${pattern}\n${output}")
  endif()
endfunction()

# The package gives line tables, and a property removes them. Without them, reports name functions and say what to do.
function(part_gtest)
  build_executable()
  expect_interposed()
  run_executable("\\[  PASSED  \\] 2 tests")
  run_executable("at gtest\\.cpp:[0-9]+ in [A-Za-z_:]*lambda\n")
  string(FIND "${output}" "hint: " hint)
  if(NOT hint EQUAL -1)
    message(FATAL_ERROR "a hint without need:\n${output}")
  endif()
  run("strip" "${STRIP}" --strip-debug "${build}/gtest")
  run_executable("at Consumer_ReportNamesPlaces_Test::TestBody::lambda; wait for rank 2")
  run_executable("\nhint: compile with -g1 to see lines\n")
  file(READ "${build}/compile_commands.json" commands)
  string(REGEX MATCHALL "-g1" with "${commands}")
  string(REGEX MATCHALL "\"command\"" all "${commands}")
  list(LENGTH with with)
  list(LENGTH all all)
  if(CONFIG STREQUAL "Release" AND NOT (with EQUAL 1 AND all EQUAL 2))
    message(FATAL_ERROR "REHEARSE_LINE_TABLES OFF should leave 1 of 2 commands with -g1; ${with} of ${all}:\n${commands}")
  endif()
endfunction()

# run_refused(<exit code> <text> <argument>...): requires that it ends with that code and prints the text.
function(run_refused code text)
  execute_process(COMMAND "${build}/${PART}" ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(FIND "${output}" "${text}" found)
  if(NOT status EQUAL ${code} OR found EQUAL -1)
    message(FATAL_ERROR "${ARGN}: exit ${status}, not ${code} with '${text}':\n${output}")
  endif()
endfunction()

# A program without the compiler and the real mode must contain neither, and must say which component has them.
function(part_main)
  build_executable()
  expect_interposed()
  run("symbols" "${NM}" --defined-only -C "${build}/main")
  foreach(namespace IN ITEMS rehearse::capture:: rehearse::graph:: rehearse::shapes:: rehearse::real::)
    string(FIND "${output}" " ${namespace}" found)
    if(NOT found EQUAL -1)
      message(FATAL_ERROR "a program of COMPONENTS main holds something of ${namespace}")
    endif()
  endforeach()
  run_refused(64 "link rehearse::split (find_package(rehearse COMPONENTS main split))" split model.pt2)
  run_refused(64 "link rehearse::real (find_package(rehearse COMPONENTS main real))"
              run "${CONSUMER_DIR}/consumer.toml" --with=gloo)
  run_executable("\nchecks: the scenario's ranks are here \\(held 4 times\\)\n[^\n]*\nran 20 operations in "
                 run "${CONSUMER_DIR}/consumer.toml" "--output=${build}/out")
endfunction()

function(part_libraries)
  build_executable()
  expect_interposed()
  run_executable("^verdict=OK held=4 stored=7 nodes=1\n$")
endfunction()

# Without COMPONENTS, rehearse::main links everything that exists: the compiler, `split`, and the real mode if it was
# built.
function(part_everything)
  build_executable()
  expect_interposed()
  set(scenario "${CONSUMER_DIR}/everything.toml")
  run_executable("\nchecks: rank 1 has sent its object \\(held 2 times\\), the compiled function adds "
                 run "${scenario}" "--output=${build}/out")
  run_refused(64 "usage: everything split MODEL" split)
  file(GLOB_RECURSE real "${prefix}/*/librehearse_real.a")
  if(real)
    run_executable("^AGREE: simulation and gloo" validate "${scenario}" --with=gloo --quiet "--output=${build}/validate")
  endif()
endfunction()

cmake_language(CALL part_${PART})
