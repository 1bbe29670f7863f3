# Everything the libraries link. rehearseConfig.cmake.in repeats the list for users of the installed package.
find_package(LibTorch REQUIRED)
# core/formatting defines the functions of LibTorch's fmt, so that our own sources do not need them inline.
get_target_property(libtorch_definitions LibTorch::c10 INTERFACE_COMPILE_DEFINITIONS)
list(REMOVE_ITEM libtorch_definitions FMT_HEADER_ONLY=1)
set_target_properties(LibTorch::c10 PROPERTIES INTERFACE_COMPILE_DEFINITIONS "${libtorch_definitions}")
find_package(Boost 1.74 REQUIRED COMPONENTS fiber)
find_package(fmt REQUIRED)
find_package(Libdw REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(GTest REQUIRED)

# The real mode needs only headers. Programs that run on GPUs open libnccl and libtorch_cuda.
if(REHEARSE_REAL STREQUAL "ON")
  find_package(Nccl REQUIRED)
elseif(NOT REHEARSE_REAL STREQUAL "OFF")
  find_package(Nccl QUIET)
  if(NOT Nccl_FOUND)
    message(STATUS "The real mode is not built: no nccl.h, or no cuda_runtime.h (REHEARSE_REAL=ON says what is missing)")
  endif()
endif()
