// SPDX-License-Identifier: BSD-3-Clause
//
// The thread-local variables of libc10 and libtorch_cpu, and how to treat each. The test TlsInventory lists new and
// missing variables of a version. The class of a variable follows from its use in LibTorch's source, not from its name.
#include "torch_state/tls/tls_inventory.h"

#include <algorithm>
#include <iterator>

namespace rehearse::torch_state {
namespace {

constexpr TlsScope per_fiber = TlsScope::per_fiber;
constexpr TlsScope optional = TlsScope::per_fiber_optional;
constexpr TlsScope per_rank = TlsScope::per_rank;
constexpr TlsScope shared = TlsScope::shared;

constexpr TlsEntry kEntries[] = {
    // c10: dispatch
    {"_ZN3c104impl26raw_local_dispatch_key_setE", per_fiber, "included and excluded dispatch keys"},
    {"_ZN3c1012_GLOBAL__N_118autograd_state_tlsE", per_fiber, "grad, inference, forward-grad modes"},
    {"_ZN3c104implL22torchDispatchModeStateE", per_fiber, "stack of torch-dispatch modes"},
    {"_ZN3c104implL21pythonDispatcherStateE", per_fiber, "Python dispatcher"},
    {"_ZN3c104implL19fakeTensorModeStateE", per_fiber, "mode of LibTorch's own fake tensors", since(14)},
    {"_ZN3c104implL21hermeticPyObjectStateE", optional, "hermetic Python object mode", until(12)},
    {"_ZN3c10L29dispatch_trace_nesting_value_E", per_fiber, "nesting of dispatcher calls"},
    {"_ZN12_GLOBAL__N_112tls_on_entryE", per_fiber, "dispatch keys at entry of the Python fallback"},
    // c10: what guards set for the current thread
    {"_ZZNK3c10L14tls_debug_infoMUlvE_clEvE3var", per_fiber, "ThreadLocalDebugInfo chain"},
    {"_ZN3c1012WarningUtils12_GLOBAL__N_120ThreadWarningHandler16warning_handler_E", per_fiber, "warning handler"},
    {"_ZN3c1012_GLOBAL__N_121caching_allocator_ptrE", per_fiber, "set by WithCPUCachingAllocatorGuard"},
    {"_ZN3c1012_GLOBAL__N_119profiling_allocatorE", per_fiber, "set by WithProfilingAllocatorGuard"},
    {"_ZN3c1012_GLOBAL__N_118allocation_plannerE", per_fiber, "set by the allocation plan guards"},
    {"_ZN3c10L14in_at_parallelE", per_fiber, "inside at::parallel_for"},
    {"_ZN3c104impl12_GLOBAL__N_121tls_fake_device_guardE", optional, "device guard of fake tensors", until(11)},
    {"_ZN3c104impl13FakeGuardImplILNS_10DeviceTypeE1EE16current_streams_E", optional, "fake CUDA streams"},
    {"_ZN3c104impl13FakeGuardImplILNS_10DeviceTypeE1EE15current_device_E", optional, "fake CUDA device"},
    // ATen: modes
    {"_ZN2at8autocast12_GLOBAL__N_113cache_enabledE", per_fiber, "autocast"},
    {"_ZN2at8autocast12_GLOBAL__N_114autocast_dtypeE", per_fiber, "autocast"},
    {"_ZN2at8autocast12_GLOBAL__N_17nestingE", per_fiber, "autocast"},
    {"_ZN2atL17NamesMode_enabledE", per_fiber, "named tensors", until(12)},
    {"_ZN2atL21rocm_is_backward_passE", per_fiber, "ROCm backward pass"},
    {"_ZN2atL24override_allow_tf32_flagE", per_fiber, "NoTF32Guard", until(14)},
    {"_ZN2atL36override_fp32_reduced_precision_flagE", per_fiber, "as NoTF32Guard", since(15)},
    {"_ZN2at12_GLOBAL__N_132kDTensorAllowImplicitReplicationE", per_fiber, "DTensor's implicit replication"},
    {"_ZN2at9functorch12_GLOBAL__N_113kFuncTorchTLSE", per_fiber, "functorch's stack of levels"},
    {"_ZN2at17functionalization4implL30_functionalizationReapplyViewsE", per_fiber, "functionalization"},
    {"_ZN2at4implL27VmapMode_current_vmap_levelE", per_fiber, "vmap level"},
    {"_ZN2at4implL24pythonTorchFunctionStateE", per_fiber, "stack of torch-function modes"},
    {"_ZN2at4implL10py_objectsE", per_fiber, "ThreadLocalPythonObjects"},
    {"_ZN2at12_GLOBAL__N_13tlsE", per_fiber, "saved-tensor hooks"},
    {"_ZN2at4impl12_GLOBAL__N_13tlsE", per_fiber, "hooks on the creation of autograd nodes", since(14)},
    {"_ZN2at15sequence_number12_GLOBAL__N_112sequence_nr_E", per_fiber, "sequence numbers of autograd nodes"},
    {"_ZN2at12_GLOBAL__N_114this_thread_idE", per_fiber, "thread number inside at::parallel_for"},
    {kThreadIdSymbol, per_rank, "RecordFunction thread id: one for all fibers of a rank"},
    // ATen: caches
    {"_ZZ30linear_int8_with_onednn_weightIN2at6TensorES1_ES1_RKS1_RKT_RKT0_S3_S3_S3_RKSt8optionalIS1_EdlSA_IN3c1010Sca"
     "larTypeEESD_dlRKSt17basic_string_viewIcSt11char_traitsIcEEdSM_RNSE_4ListISA_INSE_6ScalarEEEERSK_E26qlinear_"
     "forward"
     "_params_map",
     shared, "primitives of oneDNN by the address of the weight", since(13)},
    {"_ZZ30linear_int8_with_onednn_weightIdlEN2at6TensorERKS1_RKT_RKT0_S3_S3_S3_RKSt8optionalIS1_EdlSA_IN3c1010ScalarTy"
     "peEESD_dlRKSt17basic_string_viewIcSt11char_traitsIcEEdSM_RNSE_4ListISA_INSE_6ScalarEEEERSK_E26qlinear_forward_"
     "para"
     "ms_map",
     shared, "primitives of oneDNN by the address of the weight", since(13)},
    {"_ZZN2at8internal21lazy_init_num_threadsEvE4init", shared, "once for each OS thread"},
    {"_ZZN2at12_GLOBAL__N_120LocalCallbackManager3getEvE7manager", shared,
     "8 KB cache of RecordFunction callbacks; its settings go through at::set_record_function_tls_"},
    {"_ZZN2at6native7cpublas11KernelCacheINS1_9BrgemmKeyENS1_10GemmHelperEE9get_storeEvE13cache_kernels", shared,
     "generated kernels by shape"},
    {"_ZZN2at6native7cpublas11KernelCacheINS1_7PackKeyEN4dnnl7ukernel9transformEE9get_storeEvE13cache_"
     "kernels",
     shared, "generated kernels by shape"},
    {"_ZZN2at6native7cpublas6Brgemm11get_currentEvE7current", shared, "tile configuration of the CPU core"},
    {"_ZN2at6nativeL9workspaceE", shared, "scratch memory of NNPACK"},
    {"_ZN6caffe2L27_NoPThreadPoolGuard_enabledE", per_fiber, "set by _NoPThreadPoolGuard"},
    // autograd
    {"_ZN5torch8autogradL16checkpoint_validE", per_fiber, "engine"},
    {"_ZN5torch8autogradL13worker_deviceE", per_fiber, "engine"},
    {"_ZN5torch8autogradL11total_depthE", per_fiber, "engine: depth of re-entrant backward"},
    {"_ZN5torch8autogradL13current_depthE", per_fiber, "engine: depth of re-entrant backward"},
    {"_ZN5torch8autogradL25input_grad_buffer_exposedE", per_fiber, "engine", since(15)},
    {"_ZZNK5torch8autogradL21tls_local_ready_queueMUlvE_clEvE3var", per_fiber, "engine"},
    {"_ZZNK5torch8autogradL22tls_current_graph_taskMUlvE_clEvE3var", per_fiber, "engine"},
    {"_ZZNK5torch8autogradL27tls_current_evaluating_nodeMUlvE_clEvE3var", per_fiber, "engine"},
    // TorchScript
    {"_ZN5torch3jitL9kOptimizeE", optional, "executor settings"},
    {"_ZN5torch3jitL26autodiff_subgraph_inliningE", optional, "executor settings"},
    {"_ZN5torch3jitL29last_executed_optimized_graphE", optional, "executor"},
    {"_ZN5torch3jitL18tls_int_state_ptr_E", optional, "interpreter that is running"},
    {"_ZN5torch3jitL17inline_everythingE", optional, "compiler settings"},
    {"_ZN5torch3jitL5callsE", per_fiber, "call stack of error reports"},
    {"_ZN5torch3jit6tracer6detailL13tracing_stateE", optional, "tracer"},
    {"_ZN5torch3jit6tracer13ArgumentStash5stashE", optional, "tracer"},
    {"_ZN5torch3jit12_GLOBAL__N_17kIgnoreE", optional, "set by ScriptTypeParser guards"},
    {"_ZN5torch3jit6mobile12_GLOBAL__N_1L24exception_debug_handles_E", optional, "mobile interpreter"},
    {"_ZN5torch3jitL21caughtPythonClassNameE", optional, "exception in flight"},
    {"_ZN5torch3jitL17caughtOriginalMsgE", optional, "exception in flight"},
    {"_ZN5torch3jitL36should_use_format_with_string_table_E", optional, "serializer settings"},
    {"_ZN5torch3jitL26emitDefaultEmitPromotedOpsE", optional, "serializer settings"},
    {"_ZN5torch3jitL26emitDefautlArgsWithOutArgsE", optional, "serializer settings"},
    {"_ZN5torch3jitL25emitBytecodeDefaultInputsE", per_fiber, "serializer settings"},
    // lazy tensors, profiler, nativert
    {"_ZN5torch4lazy12_GLOBAL__N_115g_scope_contextE", optional, "scope names"},
    {"_ZN5torch4lazy12_GLOBAL__N_110g_tls_dataE", optional, "lazy tensors"},
    {"_ZN5torch4lazy12_GLOBAL__N_18g_deviceE", optional, "lazy tensors"},
    {"_ZZN5torch4lazy9TrieCache3GetEvE4trie", shared, "cache of IR nodes"},
    {"_ZZN5torch4lazy8TrieNode15GetNextUniqueIdEvE12id_generator", shared, "ids within that cache"},
    {"_ZN5torch8profiler4impl12_GLOBAL__N_116sub_queue_cache_E", shared, "cache of the profiler's queue"},
    {"_ZZN5torch8nativert18ThreadPoolExecutor4ctokEvE4ctok", shared, "token of a pool's worker thread", until(11)},
    {"_ZZN5torch8nativert18ThreadPoolExecutor4ptokEvE15associatedQueue", shared, "token of a pool's client thread",
     until(11)},
    {"_ZZN5torch8nativert18ThreadPoolExecutor4ptokEvE7pTokPtr", shared, "token of a pool's client thread", until(11)},
    // CUPTI keeps a stack for each OS thread, which no switch exchanges, and this one must be like it.
    {"_ZN5torch8profiler4impl12_GLOBAL__N_119g_external_id_stackE", shared, "mirror of CUPTI's stack", since(14)},
    {"_ZN5torch4csrc4shim7details20torch_exception_whatB5cxx11E", optional, "last error of the C shim", since(13)},
    {"_ZN5torch4csrc4shim7details38torch_exception_what_without_backtraceB5cxx11E", optional,
     "last error of the C shim", since(13)},
    // distributed
    {"_ZN4c10d12_GLOBAL__N_119comm_profiling_nameE", optional, "name of the collectives in profiles", since(12)},
    kForwardingFlags,
    {"_ZN4c10d9RankLocalIN12_GLOBAL__N_113GroupRegistryEE7cached_E", per_fiber, "group registry of the rank"},
    {"_ZN4c10d9RankLocalIN12_GLOBAL__N_112WorkRegistryEE7cached_E", per_fiber, "work registry of the rank"},
    {"_ZZN4c10d19currentProcessGroupEvE2pg", per_fiber, "current process group"},
    {"_ZN5torch11distributed8autogradL19current_context_id_E", optional, "distributed autograd"},
    {"_ZN5torch11distributed8autograd12_GLOBAL__N_114tl_context_ptrE", optional, "distributed autograd"},
    {"_ZN5torch11distributed3rpc21RemoteProfilerManager22currentThreadLocalKey_B5cxx11E", optional, "rpc"},
    {"_ZN5torch11distributed3rpc11RRefContext10recording_E", optional, "rpc"},
    {"_ZN5torch11distributed3rpc11RRefContext10userTable_E", optional, "rpc"},
    {"_ZN5torch11distributed3rpcL18allowJitRRefPickleE", optional, "rpc"},
};

constexpr TlsFamily kFamilies[] = {
    {"dnnl", "oneDNN: caches of primitives, scratch memory"},
    {"ideep", "caches of oneDNN primitives by shape"},
    {"fbgemm", "generated kernels by shape, packing buffers used within one kernel"},
    {"libkineto", "process and thread numbers of the profiler"},
    {"google", "protobuf's arena cache"},
    {"httplib", "regular expressions compiled once"},
    {"vml", "MKL vector mode, set once"},
    {"Xbyak", "last error of the assembler, read at once"},
};

}  // namespace

TlsInventory executable_inventory(int minor) { return inventory_of(std::span(&kForwardingFlags, 1), {}, minor); }

TlsInventory torch_inventory(int minor) { return inventory_of(kEntries, kFamilies, minor); }

TlsInventory inventory_of(std::span<const TlsEntry> entries, std::span<const TlsFamily> families, int minor) {
  TlsInventory inventory;
  const auto is_in = [&](const auto& row) { return row.in.contain(minor); };
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(inventory.entries), is_in);
  std::copy_if(families.begin(), families.end(), std::back_inserter(inventory.families), is_in);
  return inventory;
}

}  // namespace rehearse::torch_state
