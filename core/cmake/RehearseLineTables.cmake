# Reports name source lines if the program has line tables, which cost no measurable time. So whoever links
# rehearse::sim, rehearse::gtest or rehearse::main compiles with -g1. Exceptions are configurations with more debug
# information, and targets with
#   set_target_properties(my_tests PROPERTIES REHEARSE_LINE_TABLES OFF)

# rehearse_hand_on_line_tables(<library>)
#   For programs that use the package or contain the sources. Our own targets already have the option.
function(rehearse_hand_on_line_tables library)
  set(wanted "$<NOT:$<STREQUAL:$<TARGET_PROPERTY:REHEARSE_LINE_TABLES>,OFF>>")
  set(bare "$<NOT:$<CONFIG:Debug,RelWithDebInfo>>")
  set(option "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>,${wanted},${bare}>:-g1>")
  if(PROJECT_IS_TOP_LEVEL)
    set(option "$<INSTALL_INTERFACE:${option}>")
  endif()
  target_compile_options(${library} INTERFACE "${option}")
endfunction()
