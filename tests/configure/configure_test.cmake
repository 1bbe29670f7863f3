# Runs one CASE: configures in WORK_DIR and compares the outcome.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")

# configure(<source> <option>...) sets status and output. In output, a single space replaces blanks and line breaks.
function(configure source)
  execute_process(
    COMMAND ${launcher} "${CMAKE_COMMAND}" -S "${source}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
            "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_success)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${CASE}: configuring failed:\n${output}")
  endif()
endfunction()

function(expect_failure)
  if(status EQUAL 0)
    message(FATAL_ERROR "${CASE}: configuring passed:\n${output}")
  endif()
  foreach(words IN LISTS ARGN)
    string(FIND "${output}" "${words}" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "${CASE}: the error does not say '${words}':\n${output}")
    endif()
  endforeach()
endfunction()

# A folder that looks like a LibTorch, with the given version and the given text for libc10.so.
function(make_libtorch folder version c10_text)
  file(WRITE "${folder}/include/ATen/ATen.h" "")
  file(WRITE "${folder}/version.py" "__version__ = '${version}+cpu'\n")
  file(WRITE "${folder}/lib/libc10.so" "${c10_text}")
  file(WRITE "${folder}/lib/libtorch_cpu.so" "")
endfunction()

function(case_without_cuda)
  # Leave every folder with an nvcc out of PATH.
  string(REPLACE ":" ";" folders "$ENV{PATH}")
  foreach(folder IN LISTS folders)
    if(NOT EXISTS "${folder}/nvcc")
      list(APPEND kept "${folder}")
    endif()
  endforeach()
  string(REPLACE ";" ":" kept "${kept}")
  set(launcher "${CMAKE_COMMAND}" -E env --unset=CUDA_HOME --unset=CUDA_PATH --unset=CUDACXX "PATH=${kept}")
  configure("${SOURCE_DIR}" "-DREHEARSE_LIBTORCH_DIR=${LIBTORCH_DIR}" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
            -DCMAKE_DISABLE_FIND_PACKAGE_CUDA=ON)
  expect_success()
endfunction()

function(case_libtorch_missing_file)
  configure("${SOURCE_DIR}" "-DREHEARSE_LIBTORCH_DIR=${WORK_DIR}/nothing")
  expect_failure("this folder is not a LibTorch" "folder: ${WORK_DIR}/nothing" "CMake variable REHEARSE_LIBTORCH_DIR"
                 "found: no include/ATen/ATen.h" "pip install --no-deps torch==2.15.0 'nvidia-cuda-runtime==13")
endfunction()

function(case_libtorch_wrong_version)
  foreach(version IN ITEMS 2.10.1 2.16.0)
    make_libtorch("${WORK_DIR}/torch" ${version} "_ZN3c105ErrorC1ENSt7__cxx1112basic_string")
    configure("${SOURCE_DIR}" "-DREHEARSE_LIBTORCH_DIR=${WORK_DIR}/torch")
    expect_failure("wrong version" "folder: ${WORK_DIR}/torch" "found: ${version}"
                   "right: 2.11, 2.12, 2.13, 2.14, 2.15 (" "REHEARSE_UNTESTED_LIBTORCH=1 tries another one"
                   "pip install --no-deps torch==2.15.0")
  endforeach()
endfunction()

# Goes on with the version to the check of the ABI.
function(case_libtorch_untested_version)
  make_libtorch("${WORK_DIR}/torch" 2.16.0 "_ZN3c105ErrorC1ENS_14SourceLocationESs")
  configure("${SOURCE_DIR}" "-DREHEARSE_LIBTORCH_DIR=${WORK_DIR}/torch" -DREHEARSE_UNTESTED_LIBTORCH=1)
  expect_failure("LibTorch 2.16.0 is untested (tested: 2.11, 2.12, 2.13, 2.14, 2.15)" "old C++ ABI")
  set(launcher "${CMAKE_COMMAND}" -E env REHEARSE_UNTESTED_LIBTORCH=1)
  configure("${SOURCE_DIR}" "-DREHEARSE_LIBTORCH_DIR=${WORK_DIR}/torch")
  expect_failure("LibTorch 2.16.0 is untested" "old C++ ABI")
endfunction()

function(case_libtorch_old_abi)
  make_libtorch("${WORK_DIR}/torch" 2.15.0 "_ZN3c105ErrorC1ENS_14SourceLocationESs")
  configure("${SOURCE_DIR}" "-DREHEARSE_LIBTORCH_DIR=${WORK_DIR}/torch")
  expect_failure("old C++ ABI" "found: _GLIBCXX_USE_CXX11_ABI=0" "right: _GLIBCXX_USE_CXX11_ABI=1")
endfunction()

function(case_libtorch_from_environment)
  set(launcher "${CMAKE_COMMAND}" -E env "REHEARSE_LIBTORCH_DIR=${WORK_DIR}/nothing")
  configure("${SOURCE_DIR}")
  expect_failure("this folder is not a LibTorch" "environment variable REHEARSE_LIBTORCH_DIR")
endfunction()

function(case_unregistered_test)
  configure("${CASES_DIR}/unregistered_test" "-DREHEARSE_MODULES=${SOURCE_DIR}/core/cmake")
  expect_failure("forgotten_test.cpp is not registered")
endfunction()

function(case_link_against_arrows)
  configure("${CASES_DIR}/link_against_arrows" "-DREHEARSE_MODULES=${SOURCE_DIR}/core/cmake")
  expect_failure("link graph: rehearse_core links rehearse::sim, which is not below it")
endfunction()

function(case_bad_sanitizer)
  configure("${SOURCE_DIR}" -DREHEARSE_SANITIZE=adress)
  expect_failure("REHEARSE_SANITIZE is 'adress'; it must be address, undefined, address,undefined, or empty")
endfunction()

cmake_language(CALL case_${CASE})
