# How libraries and executables are declared. One way for all, so that options stay the same everywhere.

# rehearse_add_rooms(<folder>...)
#   add_subdirectory() for each folder that has a CMakeLists.txt; one that appears later is picked up
#   by the next build.
function(rehearse_add_rooms)
  foreach(room IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/CMakeLists.txt")
    if(found)
      add_subdirectory(${room})
    endif()
  endforeach()
endfunction()

# rehearse_room(<library> <source>...)
#   The whole CMakeLists.txt of a room: its sources belong to <library>.
function(rehearse_room library)
  if(NOT TARGET ${library})
    message(FATAL_ERROR "rehearse_room: there is no target '${library}'")
  endif()
  target_sources(${library} PRIVATE ${ARGN})
endfunction()

# rehearse_target_options(<target> [TORCH])
#   Standard, warnings, optimisation and sanitizer of our own code. TORCH: use the precompiled header, which
#   takes a source file that includes ATen and c10d from about 13 s to 3 s (g++ 12, -O2).
function(rehearse_target_options target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "")
  if(arg_TORCH AND NOT target STREQUAL "rehearse_pch")
    _rehearse_add_pch()
    target_precompile_headers(${target} REUSE_FROM rehearse_pch)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  # -O2: CMake's -O3 costs compile time and buys nothing measurable around LibTorch calls.
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<CONFIG:Release>:-O2>)
  if(REHEARSE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${REHEARSE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${REHEARSE_SANITIZE})
    if(REHEARSE_SANITIZE STREQUAL "address")
      # Debian's Boost.Context is not built for ASan: our own code announces the fiber switches.
      target_compile_definitions(${target} PUBLIC REHEARSE_ASAN=1)
    endif()
  endif()
endfunction()

# The precompiled header of everything that includes LibTorch, made once (25 s, 430 MB) and used by all.
# It holds LibTorch headers only: with std headers in it, a header of ours that forgets one would still compile
# here and fail for a user. torch/nn and torch/optim are left out: they would double its cost and slow every file
# that does not need them by 2.5 s. Files that do should include single modules (torch/nn/modules/linear.h: +5 s),
# not torch/nn.h (+13 s).
function(_rehearse_add_pch)
  if(TARGET rehearse_pch)
    return()
  endif()
  set(source "${PROJECT_BINARY_DIR}/pch/rehearse_pch.cpp")
  if(NOT EXISTS "${source}")
    file(WRITE "${source}" "// The precompiled header needs one source file to belong to.\n")
  endif()
  add_library(rehearse_pch OBJECT "${source}")
  target_link_libraries(rehearse_pch PRIVATE LibTorch::torch_cpu)
  rehearse_target_options(rehearse_pch TORCH)
  target_precompile_headers(rehearse_pch PRIVATE
    <ATen/ATen.h>
    <torch/csrc/distributed/c10d/Backend.hpp>
    <torch/csrc/distributed/c10d/ProcessGroup.hpp>
    <torch/csrc/distributed/c10d/Store.hpp>
    <torch/csrc/distributed/c10d/Work.hpp>)
endfunction()

# rehearse_add_library(<name> EXPORT_AS <short>
#                      [ROOMS <folder>...] [SOURCES <file>...] [INCLUDE <folder>...] [LIBS <target>...] [TORCH])
#   A static library rehearse_<short> with alias rehearse::<short>. ROOMS are folders below this one whose
#   CMakeLists.txt calls rehearse_room(<name> ...). INCLUDE defaults to include/ (the public headers);
#   private headers of another room are included from the house, as in "exec/fiber.h". TORCH: the sources
#   include LibTorch. A library without a single source is not created.
function(rehearse_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "EXPORT_AS" "ROOMS;SOURCES;INCLUDE;LIBS")
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

  add_library(${name} STATIC ${arg_SOURCES})
  add_library(rehearse::${arg_EXPORT_AS} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${arg_EXPORT_AS})
  if(NOT arg_INCLUDE)
    set(arg_INCLUDE include)
  endif()
  foreach(folder IN LISTS arg_INCLUDE)
    target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/${folder}>")
  endforeach()
  target_include_directories(${name} PUBLIC "$<INSTALL_INTERFACE:include>"
                             PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${arg_LIBS})
  set(torch "")
  if(arg_TORCH)
    set(torch TORCH)
  endif()
  rehearse_target_options(${name} ${torch})
  set_property(GLOBAL APPEND PROPERTY REHEARSE_LIBRARIES ${name})
  foreach(room IN LISTS rooms)
    add_subdirectory(${room})
  endforeach()
endfunction()

# rehearse_add_executable(<name> SOURCES <file>... LIBS <target>... [TORCH])
function(rehearse_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "rehearse_add_executable(${name}): give SOURCES and LIBS; unknown: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  add_executable(${name} ${arg_SOURCES})
  foreach(source IN LISTS arg_SOURCES)
    file(RELATIVE_PATH below_tests "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    set_property(GLOBAL APPEND PROPERTY REHEARSE_TEST_SOURCES "${below_tests}")
  endforeach()
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  set(torch "")
  if(arg_TORCH)
    set(torch TORCH)
  endif()
  rehearse_target_options(${name} ${torch})
endfunction()
