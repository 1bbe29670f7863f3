// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

// The inner loops of all reductions, compiled once for each instruction set (reduce_loops.h) and chosen at run time.
// This file must not include headers that define functions, because it is also compiled for instruction sets that this
// machine may not have.
namespace rehearse::fakes {

// How an element is stored. Signed and unsigned integers of one width differ only in MIN, MAX and AVG.
enum class Element { f32, f64, f16, bf16, f8_e4m3fn, f8_e5m2, i8, u8, i32, i64 };

enum class Fold { sum, product, min, max, band, bor, bxor };

// Loops over one block. `acc` has room for `accumulator_bytes` for each element, is aligned to 64 bytes, and overlaps
// no other argument.
struct ReduceKernel {
  std::size_t element_bytes = 0;
  std::size_t accumulator_bytes = 0;

  void (*load)(void* acc, const void* in, std::size_t count) = nullptr;
  void (*fold)(void* acc, const void* in, std::size_t count) = nullptr;
  // Like four calls of fold(), in[0] first.
  void (*fold4)(void* acc, const void* const* in, std::size_t count) = nullptr;
  // For PREMUL_SUM: acc = in * factor, and acc = acc + in * factor. Null for integers.
  void (*load_scaled)(void* acc, const void* in, std::size_t count, double factor) = nullptr;
  void (*fold_scaled)(void* acc, const void* in, std::size_t count, double factor) = nullptr;

  // Only for MIN and MAX of floating types, otherwise null. has_nan() tells whether an accumulator holds a NaN.
  // fold_like_std() is fold(), except that the input wins if either side is NaN or both are equal (0 and -0), as in
  // std::min(in, acc) and std::max(in, acc).
  bool (*has_nan)(const void* acc, std::size_t count) = nullptr;
  void (*fold_like_std)(void* acc, const void* in, std::size_t count) = nullptr;

  // Rounds to the stored type. Null: the accumulator already has the stored type.
  void (*store)(void* out, const void* acc, std::size_t count) = nullptr;
  void (*store_average)(void* out, const void* acc, std::size_t count, int ranks) = nullptr;
};

using FindKernel = bool (*)(Element element, Fold fold, ReduceKernel& kernel);

struct InstructionSet {
  const char* name;
  bool runs_here;
  FindKernel find;  // returns false for a combination that does not exist (bitwise folds of floating types)
};

// All compiled instruction sets, best first; sets `count`. The last one runs on every machine.
const InstructionSet* instruction_sets(std::size_t& count);

// Finds the kernel in the best instruction set of this machine. False: no such combination exists.
bool find_kernel(Element element, Fold fold, ReduceKernel& kernel);

}  // namespace rehearse::fakes
