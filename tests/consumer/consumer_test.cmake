# Installs BUILD_DIR below WORK_DIR, looks at what was exported, then configures, builds and runs CONSUMER_DIR.
cmake_minimum_required(VERSION 3.25)

function(run title)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(STATUS "${title}: exit ${status}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${title} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(prefix "${WORK_DIR}/prefix")
set(build "${WORK_DIR}/build")
file(REMOVE_RECURSE "${prefix}" "${build}")
run("install" "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")

# A package with a path of the machine that built it works nowhere else.
file(GLOB_RECURSE exported "${prefix}/*.cmake")
if(NOT exported)
  message(FATAL_ERROR "no CMake package was installed below ${prefix}")
endif()
foreach(file IN LISTS exported)
  file(READ "${file}" text)
  foreach(path IN ITEMS "${SOURCE_DIR}" "${BUILD_DIR}" "${LIBTORCH_DIR}" "/usr/lib/" "/usr/include" "/usr/local" ".so")
    string(FIND "${text}" "${path}" found)
    # FindLibTorch.cmake names the two libraries relative to the folder that it finds.
    if(NOT found EQUAL -1 AND NOT (path STREQUAL ".so" AND file MATCHES "FindLibTorch.cmake$"))
      message(FATAL_ERROR "${file} contains ${path}")
    endif()
  endforeach()
endforeach()

run("configure" "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${build}" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DREHEARSE_LIBTORCH_DIR=${LIBTORCH_DIR}" "-DCMAKE_BUILD_TYPE=${CONFIG}"
    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("build" "${CMAKE_COMMAND}" --build "${build}")

# Every libc function that librehearse_exec.a interposes must be exported by the executable, or LibTorch would go on
# calling libc's and block the thread. (C++ symbols and our own C names have no libc counterpart.)
file(GLOB_RECURSE exec_library "${prefix}/*/librehearse_exec.a")
run("interposed" "${NM}" --defined-only "${exec_library}")
string(REGEX MATCHALL " T [^\n]+" interposed "${output}")
list(FILTER interposed EXCLUDE REGEX "^ T (_Z|rehearse)")
list(LENGTH interposed count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} interposed functions in ${exec_library}: ${interposed}")
endif()
run("exported" "${NM}" -D --defined-only "${build}/consumer_test")
foreach(symbol IN LISTS interposed)
  string(FIND "${output}\n" "${symbol}\n" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "the consumer's executable does not export${symbol}")
  endif()
endforeach()

run("run" "${build}/consumer_test")
if(NOT output MATCHES "\\[  PASSED  \\] 1 test")
  message(FATAL_ERROR "the consumer's test did not run:\n${output}")
endif()
