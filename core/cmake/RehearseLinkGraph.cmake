# The libraries link in one direction:
#
#   exec <- core <- fakes <- sim <- gtest, main        what a simulation is made of
#           core <- collectives, elastic, compile <- pt2        what a program adds if it uses it
#           fakes <- real        main, pt2 <- split
#
# rehearse_exec is free of LibTorch, so that tests of schedulers start in milliseconds. Only sim/gtest uses GoogleTest.
# Simulation needs neither the compiler nor the real mode; rehearse_prove_that_it_links() proves that with the linker.

# rehearse_check_link_graph(<library>...)
#   Stops if one of the libraries links against the arrows.
function(rehearse_check_link_graph)
  set(below_rehearse_exec "")
  set(below_rehearse_core exec)
  set(below_rehearse_collectives exec core)
  set(below_rehearse_elastic exec core)
  set(below_rehearse_compile exec core)
  set(below_rehearse_pt2 exec core compile)
  set(below_rehearse_fakes exec core)
  set(below_rehearse_real exec core fakes)
  set(below_rehearse_sim exec core fakes)
  set(below_rehearse_gtest exec core fakes sim)
  set(below_rehearse_main exec core fakes sim)
  set(below_rehearse_split exec core compile pt2 fakes sim main)
  foreach(library IN LISTS ARGN)
    if(NOT DEFINED below_${library})
      message(FATAL_ERROR "link graph: ${library} has no place in core/cmake/RehearseLinkGraph.cmake")
    endif()
    get_target_property(links ${library} LINK_LIBRARIES)
    foreach(link IN LISTS links)
      if(link MATCHES "^rehearse(::|_)(.*)$" AND NOT CMAKE_MATCH_2 IN_LIST below_${library})
        message(FATAL_ERROR "link graph: ${library} links ${link}, which is not below it")
      elseif(link MATCHES "^GTest::" AND NOT library STREQUAL "rehearse_gtest")
        message(FATAL_ERROR "link graph: ${library} links ${link}; only rehearse_gtest may")
      elseif(link MATCHES "^LibTorch::" AND library STREQUAL "rehearse_exec")
        message(FATAL_ERROR "link graph: rehearse_exec links ${link}; it must stay free of LibTorch")
      endif()
    endforeach()
  endforeach()
endfunction()

# rehearse_prove_that_it_links(<name> <library>...)
#   Adds an executable <name> that takes in every object of these static libraries and links nothing else of ours. If
#   one of them calls into a library that is not listed, a symbol is undefined. The arrows above cannot show that. The
#   test configure.<name> runs the executable.
function(rehearse_prove_that_it_links name)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  # Weak, because rehearse_main has a main(), too.
  file(CONFIGURE OUTPUT "${source}" CONTENT "[[gnu::weak]] int main() { return 0; }\n" @ONLY)
  add_executable(${name} "${source}")
  set(archives "")
  set(outside "")
  foreach(library IN LISTS ARGN)
    list(APPEND archives "$<TARGET_FILE:${library}>")
    get_target_property(links ${library} LINK_LIBRARIES)
    list(APPEND outside ${links})
    add_dependencies(${name} ${library})
  endforeach()
  list(FILTER outside EXCLUDE REGEX "^rehearse(::|_)")
  list(REMOVE_DUPLICATES outside)
  if(REHEARSE_SANITIZE)
    target_link_options(${name} PRIVATE -fsanitize=${REHEARSE_SANITIZE})
  endif()
  target_link_libraries(${name} PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive ${outside})
endfunction()
