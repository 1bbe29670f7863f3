// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

// The inner loops of all reductions, compiled once for each instruction set (reduce_loops.h) and chosen at run time.
// Free of other headers: what is included here is compiled for CPUs that the machine may not be.
namespace rehearse::fakes {

// How an element is stored. i and u of one width differ in MIN, MAX and AVG only.
enum class Element { f32, f64, f16, bf16, f8_e4m3fn, f8_e5m2, i8, u8, i32, i64 };

enum class Fold { sum, product, min, max, band, bor, bxor };

// Loops over one block. `acc` holds `accumulator_bytes` for each element, aligned to 64, and overlaps nothing.
struct ReduceKernel {
  std::size_t element_bytes = 0;
  std::size_t accumulator_bytes = 0;

  void (*load)(void* acc, const void* in, std::size_t count) = nullptr;
  void (*fold)(void* acc, const void* in, std::size_t count) = nullptr;
  // The same as four folds, in[0] first.
  void (*fold4)(void* acc, const void* const* in, std::size_t count) = nullptr;
  // acc = in * factor, acc = acc + in * factor: for PREMUL_SUM. Null for integers.
  void (*load_scaled)(void* acc, const void* in, std::size_t count, double factor) = nullptr;
  void (*fold_scaled)(void* acc, const void* in, std::size_t count, double factor) = nullptr;

  // For MIN and MAX of floating types, else null. Does an accumulator hold a NaN? The same as fold(), but where either
  // side is NaN, the input stays, as in std::min(in, acc) and std::max(in, acc).
  bool (*has_nan)(const void* acc, std::size_t count) = nullptr;
  void (*fold_like_std)(void* acc, const void* in, std::size_t count) = nullptr;

  // Rounds to the stored type. Null: the accumulator already is what is stored.
  void (*store)(void* out, const void* acc, std::size_t count) = nullptr;
  void (*store_average)(void* out, const void* acc, std::size_t count, int ranks) = nullptr;
};

using FindKernel = bool (*)(Element element, Fold fold, ReduceKernel& kernel);

struct InstructionSet {
  const char* name;
  bool runs_here;
  FindKernel find;  // false: no such combination (bitwise folds of floating types)
};

// All that were compiled, best first; `count` is set. The last one runs everywhere.
const InstructionSet* instruction_sets(std::size_t& count);

// With the best instruction set of this machine.
bool find_kernel(Element element, Fold fold, ReduceKernel& kernel);

}  // namespace rehearse::fakes
