# Finds a LibTorch of libtorch_versions.txt, beside this file, and defines two imported targets:
#
#   LibTorch::c10         libc10.so
#   LibTorch::torch_cpu   libtorch_cpu.so (carries c10)
#
# Where it looks; the first hit wins:
#   1. REHEARSE_LIBTORCH_DIR, then LIBTORCH_ROOT: CMake variable, then environment variable.
#      If one is set, only its folder is tried, and a wrong folder is an error.
#   2. the project's virtual environment, <source>/.venv/lib/python3*/site-packages/torch
#   3. the torch package of the python3 on PATH
# The folder is the one that holds include/ and lib/: a wheel's site-packages/torch, or an unpacked
# libtorch archive.
#
# This file does not use TorchConfig.cmake, because that one stops without a CUDA toolkit, clashes with a C++ standard
# that was already chosen, and links libtorch_cuda. A simulation needs only libtorch_cpu and libc10.

# Sets <out_minors> to the versions of the table ("2.11;2.12"), and <out_packages> to what pip installs for <minor>; for
# the last one, if the table does not have <minor>.
function(_libtorch_read_table minor out_minors out_packages)
  set(minors "")
  file(STRINGS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/libtorch_versions.txt" rows REGEX "^2")
  foreach(row IN LISTS rows)
    string(REGEX MATCH "^([^ ]+) (.*)$" row "${row}")
    list(APPEND minors "${CMAKE_MATCH_1}")
    if(NOT minor IN_LIST minors OR CMAKE_MATCH_1 STREQUAL minor)
      string(REGEX REPLACE "([^ ]*[*])" "'\\1'" packages "${CMAKE_MATCH_2}")
    endif()
  endforeach()
  set(${out_minors} "${minors}" PARENT_SCOPE)
  set(${out_packages} "${packages}" PARENT_SCOPE)
endfunction()

_libtorch_read_table("" _libtorch_minors _libtorch_packages)
list(JOIN _libtorch_minors ", " LibTorch_VERSIONS_WANTED)
set(_libtorch_how_to_get
    "Get it with\n"
    "  python3 -m venv .venv\n"
    "  .venv/bin/pip install --no-deps ${_libtorch_packages}\n"
    "or name the folder of an existing one:\n"
    "  cmake -DREHEARSE_LIBTORCH_DIR=/path/to/site-packages/torch ...")
string(CONCAT _libtorch_how_to_get ${_libtorch_how_to_get})

function(_libtorch_locate out_dir out_source)
  foreach(variable IN ITEMS REHEARSE_LIBTORCH_DIR LIBTORCH_ROOT)
    if(NOT "${${variable}}" STREQUAL "")
      set(${out_dir} "${${variable}}" PARENT_SCOPE)
      set(${out_source} "the CMake variable ${variable}" PARENT_SCOPE)
      return()
    elseif(NOT "$ENV{${variable}}" STREQUAL "")
      set(${out_dir} "$ENV{${variable}}" PARENT_SCOPE)
      set(${out_source} "the environment variable ${variable}" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  file(GLOB candidates LIST_DIRECTORIES true
       "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch"
       "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  if(candidates)
    list(GET candidates 0 first)
    set(${out_dir} "${first}" PARENT_SCOPE)
    set(${out_source} "the project's .venv" PARENT_SCOPE)
    return()
  endif()

  find_program(_libtorch_python NAMES python3 NO_CACHE)
  if(_libtorch_python)
    # find_spec locates the package without importing it, because an import takes seconds.
    execute_process(
      COMMAND "${_libtorch_python}" -c
              "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE located OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(located)
      set(${out_dir} "${located}" PARENT_SCOPE)
      set(${out_source} "${_libtorch_python}" PARENT_SCOPE)
      return()
    endif()
  endif()
  set(${out_dir} "" PARENT_SCOPE)
  set(${out_source} "" PARENT_SCOPE)
endfunction()

# Sets <out_version> from the header that every package carries since 2.11, or from version.py for older ones.
function(_libtorch_read_version dir out_version)
  set(version "")
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS "${dir}/include/${header}")
      file(STRINGS "${dir}/include/${header}" line REGEX "\"[0-9]+\\.[0-9]+\\.[0-9]+")
      if(line MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)")
        set(version "${CMAKE_MATCH_1}")
      endif()
    endif()
  endforeach()
  if(NOT version AND EXISTS "${dir}/version.py")
    file(STRINGS "${dir}/version.py" line REGEX "^__version__")
    if(line MATCHES "'([0-9]+\\.[0-9]+\\.[0-9]+)")
      set(version "${CMAKE_MATCH_1}")
    endif()
  endif()
  set(${out_version} "${version}" PARENT_SCOPE)
endfunction()

# Sets <out_reason> to what is wrong with the folder; empty if nothing is.
function(_libtorch_check dir source out_version out_reason)
  set(${out_version} "" PARENT_SCOPE)
  if(NOT dir)
    set(${out_reason} "no LibTorch was found.\n${_libtorch_how_to_get}" PARENT_SCOPE)
    return()
  endif()
  set(where "  folder:  ${dir}\n  from:    ${source}\n")
  foreach(needed IN ITEMS include/ATen/ATen.h lib/libc10.so lib/libtorch_cpu.so)
    if(NOT EXISTS "${dir}/${needed}")
      set(${out_reason}
          "this folder is not a LibTorch.\n${where}  found:   no ${needed}\n  right:   the folder that holds include/ and lib/ of LibTorch (${LibTorch_VERSIONS_WANTED})\n${_libtorch_how_to_get}"
          PARENT_SCOPE)
      return()
    endif()
  endforeach()

  _libtorch_read_version("${dir}" version)
  set(${out_version} "${version}" PARENT_SCOPE)
  string(REGEX REPLACE "^([0-9]+[.][0-9]+).*" "\\1" minor "${version}")
  if(NOT minor IN_LIST _libtorch_minors)
    if(REHEARSE_UNTESTED_LIBTORCH OR "$ENV{REHEARSE_UNTESTED_LIBTORCH}")
      message(WARNING "LibTorch ${version} is untested (tested: ${LibTorch_VERSIONS_WANTED}). Programs say at start what "
                      "they do not know of it, if REHEARSE_UNTESTED_LIBTORCH=1 is in their environment, too")
    else()
      set(${out_reason}
          "LibTorch has the wrong version.\n${where}  found:   ${version}\n  right:   ${LibTorch_VERSIONS_WANTED} (per-rank state is tied to the internals of a version; REHEARSE_UNTESTED_LIBTORCH=1 tries another one)\n${_libtorch_how_to_get}"
          PARENT_SCOPE)
      return()
    endif()
  endif()

  file(STRINGS "${dir}/lib/libc10.so" cxx11_symbol REGEX "_ZN.*__cxx11" LIMIT_COUNT 1)
  if(NOT cxx11_symbol)
    set(${out_reason}
        "LibTorch was built with the old C++ ABI.\n${where}  found:   _GLIBCXX_USE_CXX11_ABI=0\n  right:   _GLIBCXX_USE_CXX11_ABI=1\n${_libtorch_how_to_get}"
        PARENT_SCOPE)
    return()
  endif()
  set(${out_reason} "" PARENT_SCOPE)
endfunction()

_libtorch_locate(_libtorch_dir _libtorch_source)
if(_libtorch_dir)
  get_filename_component(_libtorch_dir "${_libtorch_dir}" ABSOLUTE BASE_DIR "${CMAKE_BINARY_DIR}")
endif()
_libtorch_check("${_libtorch_dir}" "${_libtorch_source}" LibTorch_VERSION _libtorch_reason)

if(_libtorch_reason)
  set(LibTorch_FOUND FALSE)
  if(LibTorch_FIND_REQUIRED)
    message(FATAL_ERROR "FindLibTorch: ${_libtorch_reason}\n")
  elseif(NOT LibTorch_FIND_QUIETLY)
    message(STATUS "FindLibTorch: ${_libtorch_reason}")
  endif()
  # find_dependency() shows this text to the consumer of the installed package.
  set(LibTorch_NOT_FOUND_MESSAGE "${_libtorch_reason}")
  return()
endif()

set(LibTorch_FOUND TRUE)
set(LibTorch_DIR_FOUND "${_libtorch_dir}")
string(REGEX REPLACE "^([0-9]+[.][0-9]+).*" "\\1" LibTorch_MINOR "${LibTorch_VERSION}")
_libtorch_read_table("${LibTorch_MINOR}" _libtorch_minors LibTorch_PACKAGES)

if(NOT TARGET LibTorch::torch_cpu)
  if(NOT LibTorch_FIND_QUIETLY)
    message(STATUS "Found LibTorch ${LibTorch_VERSION}: ${_libtorch_dir} (${_libtorch_source})")
  endif()
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES
    IMPORTED_LOCATION "${_libtorch_dir}/lib/libc10.so"
    IMPORTED_SONAME libc10.so
    INTERFACE_INCLUDE_DIRECTORIES "${_libtorch_dir}/include"
    # LibTorch's include folder contains its own fmt (12), which hides the system's. No library defines that fmt's
    # functions, so a source file that includes both must have them inline.
    # The version is here so that everything is compiled anew with another LibTorch in the same folder. The times of its
    # files do not show that it is another one.
    INTERFACE_COMPILE_DEFINITIONS
      "_GLIBCXX_USE_CXX11_ABI=1;FMT_HEADER_ONLY=1;REHEARSE_COMPILED_WITH_LIBTORCH=${LibTorch_VERSION}")

  add_library(LibTorch::torch_cpu SHARED IMPORTED)
  set_target_properties(LibTorch::torch_cpu PROPERTIES
    IMPORTED_LOCATION "${_libtorch_dir}/lib/libtorch_cpu.so"
    IMPORTED_SONAME libtorch_cpu.so
    INTERFACE_INCLUDE_DIRECTORIES
      "${_libtorch_dir}/include;${_libtorch_dir}/include/torch/csrc/api/include"
    # These select classes in c10d's headers; the wheels are built with both.
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
endif()
