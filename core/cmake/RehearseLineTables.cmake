# Reports name lines where the program has line tables, which cost no measurable time: whoever links rehearse::sim,
# rehearse::gtest or rehearse::main compiles with -g1, but in configurations that have more, and but for targets with
#   set_target_properties(my_tests PROPERTIES REHEARSE_LINE_TABLES OFF)

# rehearse_hand_on_line_tables(<library>)
#   For those who use the package, or have the sources below their own. Our own targets have the option already.
function(rehearse_hand_on_line_tables library)
  set(wanted "$<NOT:$<STREQUAL:$<TARGET_PROPERTY:REHEARSE_LINE_TABLES>,OFF>>")
  set(bare "$<NOT:$<CONFIG:Debug,RelWithDebInfo>>")
  set(option "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>,${wanted},${bare}>:-g1>")
  if(PROJECT_IS_TOP_LEVEL)
    set(option "$<INSTALL_INTERFACE:${option}>")
  endif()
  target_compile_options(${library} INTERFACE "${option}")
endfunction()
