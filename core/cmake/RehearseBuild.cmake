# Choices that hold for the whole build tree. Nothing here reaches an installed package.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

  # A compiler needs 1-2 GB for LibTorch's headers, so as many compilers as cores would make a laptop swap.
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS rehearse_compile=${REHEARSE_COMPILE_JOBS} rehearse_link=2)
  set(CMAKE_JOB_POOL_COMPILE rehearse_compile)
  set(CMAKE_JOB_POOL_LINK rehearse_link)
  set(CMAKE_JOB_POOL_PRECOMPILE_HEADER rehearse_compile)
endif()

if(NOT REHEARSE_SANITIZE MATCHES "^(|address|undefined|address,undefined)$")
  message(FATAL_ERROR "REHEARSE_SANITIZE is '${REHEARSE_SANITIZE}'; it must be address, undefined, address,undefined, or empty")
endif()

if(REHEARSE_USE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(REHEARSE_CCACHE NAMES ccache)
  if(REHEARSE_CCACHE)
    # ccache requires pch_defines and time_macros before it caches with precompiled headers. With base_dir and without
    # hash_dir, build/dev, build/release and other checkouts share entries. A configure step makes the plugin of g++
    # anew, so compilers and plugins are told by their content.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env
        "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
        "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
        "${REHEARSE_CCACHE}")
  endif()
endif()

# A build links some 150 programs of 35 MB each. mold takes a fifth of the usual linker's time.
if(REHEARSE_USE_MOLD AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld=")
  find_program(rehearse_mold NAMES mold NO_CACHE)  # not cached, because mold may appear or disappear
  if(rehearse_mold)
    include(CheckLinkerFlag)
    check_linker_flag(CXX -fuse-ld=mold REHEARSE_MOLD_LINKS)
    if(REHEARSE_MOLD_LINKS)
      add_link_options(-fuse-ld=mold)
    endif()
  endif()
endif()
