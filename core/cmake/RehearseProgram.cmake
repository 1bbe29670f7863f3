# Programs for the rehearse command and for tests. They may also be shared objects, of which each rank gets a copy.
set(REHEARSE_MODULE_SOURCE "${CMAKE_CURRENT_LIST_DIR}/rehearse_module.cpp")
# The libraries that shared objects find in the executable. The installed package sets this to the requested components.
if(NOT DEFINED REHEARSE_MODULE_LIBRARIES)
  set(REHEARSE_MODULE_LIBRARIES core fakes collectives elastic compile pt2)
endif()

# rehearse_add_program(<name> SOURCES <file>... [LIBS <target>...] [MODULE])
#   Adds the executable <name>: the rehearse command for the programs that SOURCES register. MODULE: see
#   rehearse_add_module(); the shared object is <name>_program.
function(rehearse_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MODULE" "" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "rehearse_add_program(${name}): give SOURCES; unknown: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(arg_MODULE)
    add_executable(${name})
    target_link_libraries(${name} PRIVATE rehearse::main)
    rehearse_add_module(${name}_program ${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS})
  else()
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE rehearse::main ${arg_LIBS})
  endif()
endfunction()

# rehearse_add_module(<name> <executable> SOURCES <file>... [LIBS <target>...])
#   Builds the programs of SOURCES as a shared object <name> beside the executable, which knows them as if they were
#   linked into it. Each rank that runs one gets its own copy of the object, and thus its own globals, statics and
#   thread_locals. An archive among LIBS becomes part of the object; the state of a shared library belongs to the
#   process. The executable takes in all of the libraries in REHEARSE_MODULE_LIBRARIES, and exports them; do not name
#   them in LIBS.
function(rehearse_add_module name executable)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "rehearse_add_module(${name}): give SOURCES; unknown: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  add_library(${name} MODULE "${REHEARSE_MODULE_SOURCE}" ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES PREFIX "" UNITY_BUILD OFF)
  target_compile_features(${name} PRIVATE cxx_std_20)
  foreach(property IN ITEMS INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS)
    set_property(TARGET ${name} APPEND PROPERTY
                 ${property} "$<TARGET_PROPERTY:rehearse::fakes,INTERFACE_${property}>")
  endforeach()
  # Use neither unique symbols nor the executable's, because copies would share their single definition. Each run resets
  # the object's variables to their first values, together with the gaps between them, which AddressSanitizer guards.
  target_compile_options(${name} PRIVATE -g1 $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique> -fno-sanitize=address)
  target_link_options(${name} PRIVATE LINKER:-Bsymbolic LINKER:-z,now)
  target_link_libraries(${name} PRIVATE ${arg_LIBS} LibTorch::torch_cpu LibTorch::c10)

  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}_registered.cpp")
  set(text "#include <rehearse/job/program_module.h>\n\n")
  string(APPEND text "static const rehearse::RegisteredModule module(\"${name}${CMAKE_SHARED_MODULE_SUFFIX}\");\n")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
  target_sources(${executable} PRIVATE "${source}")
  target_compile_features(${executable} PRIVATE cxx_std_20)
  set_target_properties(${executable} PROPERTIES ENABLE_EXPORTS ON)
  set_target_properties(${executable} ${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  list(TRANSFORM REHEARSE_MODULE_LIBRARIES REPLACE "(.+)" "$<TARGET_FILE:rehearse::\\1>" OUTPUT_VARIABLE archives)
  list(TRANSFORM REHEARSE_MODULE_LIBRARIES PREPEND "rehearse::" OUTPUT_VARIABLE libraries)
  target_link_options(${executable} PRIVATE LINKER:--whole-archive ${archives} LINKER:--no-whole-archive)
  target_link_libraries(${executable} PRIVATE ${libraries})
  add_dependencies(${executable} ${name})
endfunction()
