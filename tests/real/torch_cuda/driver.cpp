// SPDX-License-Identifier: BSD-3-Clause
// The functions of the driver and the run-time compiler whose addresses LibTorch takes. LibTorch calls only the first
// function.
extern "C" {

int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}

#define REHEARSE_NEVER_CALLED(name) \
  int name() { return 999; }

REHEARSE_NEVER_CALLED(cuCtxGetCurrent)
REHEARSE_NEVER_CALLED(cuCtxSetCurrent)
REHEARSE_NEVER_CALLED(cuDeviceGet)
REHEARSE_NEVER_CALLED(cuDeviceGetAttribute)
REHEARSE_NEVER_CALLED(cuDevicePrimaryCtxRetain)
REHEARSE_NEVER_CALLED(cuFuncGetAttribute)
REHEARSE_NEVER_CALLED(cuFuncSetAttribute)
REHEARSE_NEVER_CALLED(cuFuncSetCacheConfig)
REHEARSE_NEVER_CALLED(cuGetErrorString)
REHEARSE_NEVER_CALLED(cuLaunchCooperativeKernel)
REHEARSE_NEVER_CALLED(cuLaunchKernel)
REHEARSE_NEVER_CALLED(cuLinkAddData_v2)
REHEARSE_NEVER_CALLED(cuLinkComplete)
REHEARSE_NEVER_CALLED(cuLinkCreate_v2)
REHEARSE_NEVER_CALLED(cuModuleGetFunction)
REHEARSE_NEVER_CALLED(cuModuleLoad)
REHEARSE_NEVER_CALLED(cuModuleLoadData)
REHEARSE_NEVER_CALLED(cuModuleLoadDataEx)
REHEARSE_NEVER_CALLED(cuModuleUnload)
REHEARSE_NEVER_CALLED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REHEARSE_NEVER_CALLED(cuPointerGetAttribute)
REHEARSE_NEVER_CALLED(cuTensorMapEncodeTiled)

REHEARSE_NEVER_CALLED(nvrtcAddNameExpression)
REHEARSE_NEVER_CALLED(nvrtcCompileProgram)
REHEARSE_NEVER_CALLED(nvrtcCreateProgram)
REHEARSE_NEVER_CALLED(nvrtcDestroyProgram)
REHEARSE_NEVER_CALLED(nvrtcGetCUBIN)
REHEARSE_NEVER_CALLED(nvrtcGetCUBINSize)
REHEARSE_NEVER_CALLED(nvrtcGetErrorString)
REHEARSE_NEVER_CALLED(nvrtcGetLoweredName)
REHEARSE_NEVER_CALLED(nvrtcGetPTX)
REHEARSE_NEVER_CALLED(nvrtcGetPTXSize)
REHEARSE_NEVER_CALLED(nvrtcGetProgramLog)
REHEARSE_NEVER_CALLED(nvrtcGetProgramLogSize)
REHEARSE_NEVER_CALLED(nvrtcVersion)
}
