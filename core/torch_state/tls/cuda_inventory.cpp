// SPDX-License-Identifier: BSD-3-Clause
//
// The thread-local variables of LibTorch's CUDA libraries, and how to treat each. Variables are shared between
// ranks if LibTorch keeps them per device, or asks for the current device at each use.
#include "torch_state/tls/tls_inventory.h"

namespace rehearse::torch_state {
namespace {

constexpr TlsEntry kC10CudaEntries[] = {
    {"_ZN3c104cudaL17targetDeviceIndexE", TlsScope::per_fiber, "device that is chosen, and has no context yet"},
    {"_ZN3c104cuda12_GLOBAL__N_115current_streamsE", TlsScope::per_fiber, "current streams; has a destructor"},
    {"_ZN3c104cuda20CUDACachingAllocator6Native22DeviceCachingAllocator13user_metadataB5cxx11E", TlsScope::per_fiber,
     "set by setUserMetadata(), for traces of memory"},
    {"_ZN3c104cuda20CUDACachingAllocator6Native22DeviceCachingAllocator15compile_contextB5cxx11E", TlsScope::per_fiber,
     "stack of pushCompileContext(), for traces of memory"},
    {"_ZN3c104cuda20CUDACachingAllocator6Native27registration_counter_globalE", TlsScope::shared,
     "numbers the allocator's blocks in the order in which they were made; ranks share the allocator", until(11)},
    {"_ZN3c104cuda12_GLOBAL__N_121cuda_error_log_bufferE", TlsScope::shared,
     "messages of the driver during one call of CUDA, read after it", since(14)},
};

constexpr TlsEntry kTorchCudaEntries[] = {
    // cusparseLtInit() binds a handle to the current device, and LibTorch makes one handle per thread.
    {"_ZN2at6native6handleE", TlsScope::per_fiber_optional, "handle of cuSPARSELt", until(13)},
    {"_ZN2at6native18handle_initializedE", TlsScope::per_fiber_optional, "whether there is one", until(13)},
    {"_ZZN2at6native40get_cusparselt_handle_for_current_deviceEvE7handles", TlsScope::shared,
     "handles of cuSPARSELt by device", since(14)},
    {"_ZZN2at4cuda24getCurrentCUDABlasHandleEvE12myPoolWindow", TlsScope::shared, "handles by device; told the stream",
     until(11)},
    {"_ZZN2at4cuda24getCurrentCUDABlasHandleEbE12myPoolWindow", TlsScope::shared, "by device, too", {12, 14}},
    {"_ZZN2at4cudaL19getCuBlasPoolWindowINS0_12_GLOBAL__N_122DeviceThreadHandlePoolIP13cublasContextXadL_ZNS2_18create"
     "CublasHandleEPS5_EEXadL_ZNS2_19destroyCublasHandleES5_EEEEEERNT_10PoolWindowEvE12myPoolWindow",
     TlsScope::shared, "handles by device; told the stream", since(15)},
    {"_ZZN2at4cuda26getCurrentCUDASparseHandleEvE12myPoolWindow", TlsScope::shared,
     "handles by device; told the stream"},
    {"_ZZN2at6native14getCudnnHandleEvE12myPoolWindow", TlsScope::shared, "handles by device; told the stream"},
    {"_ZZN2at6native12_GLOBAL__N_120_get_benchmark_cacheEvE15benchmark_cache", TlsScope::shared,
     "plans of convolutions; ConvolutionParams::device_id is part of the key"},
    {"_ZZN2at6native12_GLOBAL__N_126_get_benchmark_cache_fusedEvE21benchmark_cache_fused", TlsScope::shared,
     "plans of convolutions; ConvolutionParams::device_id is part of the key"},
    {"_ZZN2at6native17getMHAGraphCache_EvE8instance", TlsScope::shared,
     "plans of attention; MHAParams::device_id is part of the key"},
    {"_ZZN2at6native25getMHAGraphBackwardCache_EvE8instance", TlsScope::shared,
     "plans of attention; MHAParams::device_id is part of the key"},
    {"_ZN4c10d16ProcessGroupNCCL23ncclActiveGroupCounter_E", TlsScope::shared,
     "open groups of c10d's own NCCL back end, which fibers do not use"},
    {"_ZZN4c10d14CUDAEventCache3getEaE14cacheDeviceMap", TlsScope::shared,
     "events by device, of c10d's own NCCL back end"},
    {"_ZZN2at4cuda7tunable12_GLOBAL__N_118dynamic_dims_stackEvE5stack", TlsScope::per_fiber_optional,
     "stack of the dynamic dimensions of tunable operators", since(15)},
    kForwardingFlags,
};

constexpr TlsFamily kTorchCudaFamilies[] = {
    {"cutlass", "properties of device_ordinal_, asked for anew when the current device is another"},
    {"cudnn_frontend", "constants", since(12)},
};

}  // namespace

TlsInventory c10_cuda_inventory(int minor) { return inventory_of(kC10CudaEntries, {}, minor); }
TlsInventory torch_cuda_inventory(int minor) { return inventory_of(kTorchCudaEntries, kTorchCudaFamilies, minor); }

}  // namespace rehearse::torch_state
