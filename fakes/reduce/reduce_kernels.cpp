// SPDX-License-Identifier: BSD-3-Clause
#include "reduce/reduce_kernels.h"

namespace rehearse::fakes {

#if REHEARSE_X86_KERNELS
namespace avx512 {
bool find_kernel(Element element, Fold fold, ReduceKernel& kernel);
}
namespace avx2 {
bool find_kernel(Element element, Fold fold, ReduceKernel& kernel);
}
#endif
namespace baseline {
bool find_kernel(Element element, Fold fold, ReduceKernel& kernel);
}

const InstructionSet* instruction_sets(std::size_t& count) {
  static const InstructionSet sets[] = {
#if REHEARSE_X86_KERNELS
      {"avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl"),
       &avx512::find_kernel},
      {"avx2", __builtin_cpu_supports("avx2") != 0, &avx2::find_kernel},
#endif
      {"baseline", true, &baseline::find_kernel},
  };
  count = sizeof(sets) / sizeof(sets[0]);
  return sets;
}

bool find_kernel(Element element, Fold fold, ReduceKernel& kernel) {
  static const FindKernel best = [] {
    std::size_t count = 0;
    const InstructionSet* set = instruction_sets(count);
    while (!set->runs_here) ++set;
    return set->find;
  }();
  return best(element, fold, kernel);
}

}  // namespace rehearse::fakes
