# Units of several source files. A LibTorch header costs seconds in each compiler that reads it, and a room's files read
# the same ones: twelve of them in one unit compile in the time of three. With REHEARSE_UNITY_BUILD off (preset dev) each
# file is a unit, and a change compiles that file alone.

# rehearse_unite(<target> <group> [<source>...] [TORCH_FREE])
#   These sources of the target become units of at most REHEARSE_UNITY_SIZE files, in their order. Sources with compile
#   options of their own stay alone (CMake sees to it). TORCH_FREE: the units do without the precompiled header.
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
    # As many files in each: 13 are 7 and 6.
    math(EXPR size "(${left} + ${units} - ${unit}) / (${units} - ${unit} + 1)")
    list(SUBLIST sources 0 ${size} together)
    list(REMOVE_ITEM sources ${together})
    list(LENGTH sources left)
    set_source_files_properties(${together} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group}_${unit})
    # The source file that CMake writes for the unit. It knows nothing of the properties of what it includes.
    set(file "${folder}/CMakeFiles/${target}.dir/Unity/unity_${group}_${unit}_cxx.cxx")
    set_property(TARGET ${target} APPEND PROPERTY REHEARSE_UNITS "${file}")
    if(arg_TORCH_FREE)
      set_source_files_properties("${file}" TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endwhile()
endfunction()
