# Install rules and the CMake package. Included last, because all libraries must be known.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rehearse_libraries GLOBAL PROPERTY REHEARSE_LIBRARIES)
# For ./dev install, which prints the folder. The package itself names no folder of this machine.
file(WRITE "${PROJECT_BINARY_DIR}/libtorch.txt" "${LibTorch_DIR_FOUND}\n")

# What an installation holds, without tests and examples, for ./dev install.
add_custom_target(rehearse_package DEPENDS ${rehearse_libraries})
if(TARGET rehearse_command)
  add_dependencies(rehearse_package rehearse_command rehearse_installed)
endif()
get_property(rehearse_include_folders GLOBAL PROPERTY REHEARSE_INCLUDE_FOLDERS)
list(REMOVE_DUPLICATES rehearse_include_folders)
set(rehearse_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rehearse")

foreach(folder IN LISTS rehearse_include_folders)
  if(EXISTS "${folder}")
    install(DIRECTORY "${folder}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()
install(TARGETS ${rehearse_libraries} EXPORT rehearseTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT rehearseTargets NAMESPACE rehearse:: DESTINATION "${rehearse_package_dir}")

list(TRANSFORM rehearse_libraries REPLACE "^rehearse_" "" OUTPUT_VARIABLE rehearse_components)
configure_package_config_file(
  core/cmake/rehearseConfig.cmake.in "${PROJECT_BINARY_DIR}/rehearseConfig.cmake"
  INSTALL_DESTINATION "${rehearse_package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rehearseConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rehearseConfig.cmake" "${PROJECT_BINARY_DIR}/rehearseConfigVersion.cmake"
              core/cmake/FindLibTorch.cmake core/cmake/libtorch_versions.txt core/cmake/FindLibdw.cmake core/cmake/RehearseProgram.cmake
              core/cmake/rehearse_module.cpp
        DESTINATION "${rehearse_package_dir}")
install(FILES core/exec/monitor/rehearse-gdb.py DESTINATION "${CMAKE_INSTALL_DATADIR}/rehearse")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
