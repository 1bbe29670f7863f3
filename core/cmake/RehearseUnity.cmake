# Units of several source files. A compiler needs seconds to read a LibTorch header, and a room's files include the same
# ones: twelve of them in one unit compile in the time of three. With REHEARSE_UNITY_BUILD off (preset dev), each file
# is a unit, and a change compiles only that file.

# rehearse_unite(<target> <group> [<source>...] [TORCH_FREE])
#   Combines these sources of the target into units of at most REHEARSE_UNITY_SIZE files, in their order. Sources with
#   their own compile options stay alone (CMake sees to it). TORCH_FREE: the units do not use the precompiled header.
function(rehearse_unite target group)
  cmake_parse_arguments(PARSE_ARGV 2 arg "TORCH_FREE" "" "")
  if(NOT REHEARSE_UNITY_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(folder ${target} BINARY_DIR)
  set(sources ${arg_UNPARSED_ARGUMENTS})
  list(LENGTH sources left)
  math(EXPR units "(${left} + ${REHEARSE_UNITY_SIZE} - 1) / ${REHEARSE_UNITY_SIZE}")
  set(unit 0)
  while(sources)
    math(EXPR unit "${unit} + 1")
    # Units of equal size: 13 files become 7 and 6.
    math(EXPR size "(${left} + ${units} - ${unit}) / (${units} - ${unit} + 1)")
    list(SUBLIST sources 0 ${size} together)
    list(REMOVE_ITEM sources ${together})
    list(LENGTH sources left)
    set_source_files_properties(${together} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group}_${unit})
    # The source file that CMake writes for the unit. It does not inherit the properties of the files that it includes.
    set(file "${folder}/CMakeFiles/${target}.dir/Unity/unity_${group}_${unit}_cxx.cxx")
    set_property(TARGET ${target} APPEND PROPERTY REHEARSE_UNITS "${file}")
    if(arg_TORCH_FREE)
      set_source_files_properties("${file}" TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endwhile()
endfunction()
