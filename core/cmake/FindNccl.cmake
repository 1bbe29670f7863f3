# Finds the headers of NCCL and of CUDA's run-time library, and defines one imported target:
#
#   Nccl::headers   nccl.h, cuda_runtime.h; nothing to link: a program opens the libraries when it needs them
#
# Where it looks: REHEARSE_NCCL_INCLUDE_DIR and REHEARSE_CUDA_INCLUDE_DIR; a CUDA toolkit (CUDA_PATH, /usr/local/cuda);
# the system's folders; the packages nvidia-nccl-cu13 and nvidia-cuda-runtime in the project's .venv, or beside LibTorch.

file(GLOB _nccl_packages LIST_DIRECTORIES true
     "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/nccl/include"
     "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/include"
     "${LibTorch_DIR_FOUND}/../nvidia/nccl/include" "${LibTorch_DIR_FOUND}/../nvidia/cu13/include")
set(_nccl_hints ENV CUDA_PATH /usr/local/cuda/include)
find_path(REHEARSE_NCCL_INCLUDE_DIR nccl.h HINTS ${_nccl_hints} PATHS ${_nccl_packages} PATH_SUFFIXES include
          DOC "The folder of nccl.h")
find_path(REHEARSE_CUDA_INCLUDE_DIR cuda_runtime.h HINTS ${_nccl_hints} PATHS ${_nccl_packages} PATH_SUFFIXES include
          DOC "The folder of cuda_runtime.h")
mark_as_advanced(REHEARSE_NCCL_INCLUDE_DIR REHEARSE_CUDA_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Nccl
  REQUIRED_VARS REHEARSE_NCCL_INCLUDE_DIR REHEARSE_CUDA_INCLUDE_DIR
  REASON_FAILURE_MESSAGE
    "get it with .venv/bin/pip install --no-deps nvidia-nccl-cu13==2.28.9 'nvidia-cuda-runtime==13.0.*'")

if(Nccl_FOUND AND NOT TARGET Nccl::headers)
  add_library(Nccl::headers INTERFACE IMPORTED)
  set_target_properties(Nccl::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${REHEARSE_NCCL_INCLUDE_DIR};${REHEARSE_CUDA_INCLUDE_DIR}")
endif()
