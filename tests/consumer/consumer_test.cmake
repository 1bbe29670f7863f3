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
run("symbols" "${NM}" -D --defined-only "${build}/consumer_test")
foreach(symbol IN ITEMS pthread_cond_wait pthread_cond_signal pthread_mutex_lock clock_gettime)
  if(NOT output MATCHES " T ${symbol}\n")
    message(FATAL_ERROR "the consumer's executable does not export ${symbol}, so LibTorch would block the thread")
  endif()
endforeach()
run("run" "${build}/consumer_test")
if(NOT output MATCHES "\\[  PASSED  \\] 1 test")
  message(FATAL_ERROR "the consumer's test did not run:\n${output}")
endif()
