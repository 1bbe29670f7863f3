# Runs one CASE of ./dev with a copy of it in WORK_DIR. PATH holds only the tools that this file names.
cmake_minimum_required(VERSION 3.25)
set(tree "${WORK_DIR}/tree")
set(bin "${WORK_DIR}/bin")
file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${tree}" "${bin}")
file(COPY "${DEV}" DESTINATION "${tree}")
get_filename_component(source_dir "${DEV}" DIRECTORY)
file(COPY "${source_dir}/core/cmake/libtorch_versions.txt" DESTINATION "${tree}/core/cmake")
foreach(scenario IN ITEMS lm_ddp/lm_ddp.toml lm_ddp/small.toml other/other.toml)
  file(WRITE "${tree}/docs/examples/${scenario}" "program = \"lm_ddp\"\n")
endforeach()
foreach(tool IN ITEMS basename cat comm dirname env find head realpath sed sort)
  find_program(found_${tool} NAMES ${tool} REQUIRED)
  file(CREATE_LINK "${found_${tool}}" "${bin}/${tool}" SYMBOLIC)
endforeach()

function(make_tool name text)
  file(WRITE "${bin}/${name}" "#!${BASH}\n${text}\n")
  file(CHMOD "${bin}/${name}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()

# dev(<argument>...) sets status, output and errors. No case may build anything.
function(dev)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env --unset=REHEARSE_SKIP_PACKAGES "PATH=${bin}" "${BASH}" "${tree}/dev" ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  file(GLOB left RELATIVE "${tree}" "${tree}/*" "${tree}/.*")
  list(SORT left)
  if(NOT left STREQUAL "core;dev;docs")
    message(FATAL_ERROR "${CASE}: ./dev ${ARGN} left ${left}")
  endif()
  foreach(name IN ITEMS status output errors)
    set(${name} "${${name}}" PARENT_SCOPE)
  endforeach()
endfunction()

function(expect what found expected)
  if(NOT found STREQUAL expected)
    message(FATAL_ERROR "${CASE}: ${what}:\n${found}\nexpected:\n${expected}")
  endif()
endfunction()

# No apt-get, ninja or python; a cmake that is too old; one library that was removed, and one that is unknown.
function(case_missing_packages)
  make_tool(g++ "exit 0")
  make_tool(cmake "echo cmake version 3.24.9")
  make_tool(dpkg-query [=[
for name in "${@:3}"; do
  case $name in
    libdw-dev) echo "$name:amd64 config-files" ;;
    gdb) echo "no packages found matching gdb" >&2 ;;
    *) echo "$name:amd64 installed" ;;
  esac
done]=])
  set(missing "cmake ninja-build python3-venv gdb libdw-dev")
  foreach(command IN ITEMS run test build bench)
    dev(${command})
    expect("exit code of ${command}" "${status}" 69)
    expect("stdout of ${command}" "${output}" "")
    expect("stderr of ${command}" "${errors}" "dev: missing: ${missing}
dev: they cannot be installed from here (no apt-get, or neither root nor sudo without a password). Run:
dev:   sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing}
")
  endforeach()
endfunction()

function(case_wrong_scenario)
  dev(run docs/examples/lm_ddp/large.toml)
  expect("exit code" "${status}" 64)
  expect("stdout" "${output}" "")
  expect("stderr" "${errors}" "dev: no scenario file 'docs/examples/lm_ddp/large.toml'; those that exist:
dev:   docs/examples/lm_ddp/lm_ddp.toml
dev:   docs/examples/lm_ddp/small.toml
dev:   docs/examples/other/other.toml
")
endfunction()

function(case_install_nowhere)
  dev(install)
  expect("exit code" "${status}" 64)
  expect("stdout" "${output}" "")
  expect("stderr" "${errors}" "dev: install needs a folder, as in: ./dev install ~/rehearse\n")
endfunction()

function(case_wrong_command)
  dev(biuld)
  expect("exit code" "${status}" 64)
  expect("stdout" "${output}" "")
  string(REGEX MATCH "^[^\n]*\n[^\n]*\n" start "${errors}")
  expect("stderr" "${start}" "usage: ./dev [--libtorch=VERSION] <command>
  run [SCENARIO [args]]  build and run a scenario or a Python script; without one: docs/examples/lm_ddp/lm_ddp.toml
")
  set(usage "${errors}")
  dev(help)
  expect("exit code of help" "${status}" 0)
  expect("stdout of help" "${output}" "${usage}")
endfunction()

function(case_wrong_libtorch)
  dev(--libtorch=2.10 run)
  expect("exit code" "${status}" 64)
  expect("stdout" "${output}" "")
  expect("stderr" "${errors}" "dev: there is no LibTorch 2.10 here; there are: 2.11 2.12 2.13 2.14 2.15\n")
endfunction()

cmake_language(CALL case_${CASE})
