// SPDX-License-Identifier: BSD-3-Clause

// The loops behind ReduceKernel, compiled once for each instruction set. The including file defines REHEARSE_ISA, a
// namespace of its own. Only find_kernel() may be visible outside that file: the linker could merge an inline function
// with the same function of another file, and keep a copy that the CPU at run time cannot execute. Therefore this file
// uses no function of the standard library, and everything in it has internal linkage.
#ifndef REHEARSE_ISA
#error "define REHEARSE_ISA"
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <rehearse_internal/libtorch/version.h>

#include "reduce/reduce_kernels.h"

namespace rehearse::fakes::REHEARSE_ISA {
namespace {

#include "reduce/reduce_elements.h"

// Integers wrap, so sums and products are computed as unsigned numbers of at least 32 bits.
template <class A>
using Unsigned = std::conditional_t<sizeof(A) == 8, std::uint64_t, std::uint32_t>;

struct Sum {
  template <class A>
  static A apply(A a, A b) {
    if constexpr (std::is_floating_point_v<A>)
      return a + b;
    else
      return static_cast<A>(static_cast<Unsigned<A>>(a) + static_cast<Unsigned<A>>(b));
  }
};

struct Product {
  template <class A>
  static A apply(A a, A b) {
    if constexpr (std::is_floating_point_v<A>)
      return a * b;
    else
      return static_cast<A>(static_cast<Unsigned<A>>(a) * static_cast<Unsigned<A>>(b));
  }
};

// For floating types, a NaN on either side stays: `b != b` takes over a NaN in `b`, and if `a` is a NaN, all
// comparisons with it are false.
struct Min {
  template <class A>
  static A apply(A a, A b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};

struct Max {
  template <class A>
  static A apply(A a, A b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};

// These compute std::min(b, a) and std::max(b, a).
struct StdMin {
  template <class A>
  static A apply(A a, A b) {
    return a < b ? a : b;
  }
};

struct StdMax {
  template <class A>
  static A apply(A a, A b) {
    return b < a ? a : b;
  }
};

struct Band {
  template <class A>
  static A apply(A a, A b) {
    return static_cast<A>(a & b);
  }
};

struct Bor {
  template <class A>
  static A apply(A a, A b) {
    return static_cast<A>(a | b);
  }
};

struct Bxor {
  template <class A>
  static A apply(A a, A b) {
    return static_cast<A>(a ^ b);
  }
};

template <class N>
struct Loops {
  using Stored = typename N::Stored;
  using Acc = typename N::Acc;

  static void load(void* acc_, const void* in_, std::size_t count) {
    Acc* __restrict acc = static_cast<Acc*>(acc_);
    const Stored* __restrict in = static_cast<const Stored*>(in_);
    for (std::size_t i = 0; i < count; ++i) acc[i] = N::decode(in[i]);
  }

  template <class Op>
  static void fold(void* acc_, const void* in_, std::size_t count) {
    Acc* __restrict acc = static_cast<Acc*>(acc_);
    const Stored* __restrict in = static_cast<const Stored*>(in_);
    for (std::size_t i = 0; i < count; ++i) acc[i] = Op::apply(acc[i], N::decode(in[i]));
  }

  // Folds four inputs in one pass, so that the accumulator is read and written a quarter as often.
  template <class Op>
  static void fold4(void* acc_, const void* const* in, std::size_t count) {
    Acc* __restrict acc = static_cast<Acc*>(acc_);
    const Stored* __restrict a = static_cast<const Stored*>(in[0]);
    const Stored* __restrict b = static_cast<const Stored*>(in[1]);
    const Stored* __restrict c = static_cast<const Stored*>(in[2]);
    const Stored* __restrict d = static_cast<const Stored*>(in[3]);
    for (std::size_t i = 0; i < count; ++i) {
      Acc x = Op::apply(acc[i], N::decode(a[i]));
      x = Op::apply(x, N::decode(b[i]));
      x = Op::apply(x, N::decode(c[i]));
      acc[i] = Op::apply(x, N::decode(d[i]));
    }
  }

  static bool has_nan(const void* acc_, std::size_t count) {
    const Acc* __restrict acc = static_cast<const Acc*>(acc_);
    int found = 0;
    for (std::size_t i = 0; i < count; ++i) found |= acc[i] != acc[i];
    return found != 0;
  }

  static void load_scaled(void* acc_, const void* in_, std::size_t count, double factor_) {
    Acc* __restrict acc = static_cast<Acc*>(acc_);
    const Stored* __restrict in = static_cast<const Stored*>(in_);
    const Acc factor = static_cast<Acc>(factor_);
    for (std::size_t i = 0; i < count; ++i) acc[i] = N::decode(in[i]) * factor;
  }

  static void fold_scaled(void* acc_, const void* in_, std::size_t count, double factor_) {
    Acc* __restrict acc = static_cast<Acc*>(acc_);
    const Stored* __restrict in = static_cast<const Stored*>(in_);
    const Acc factor = static_cast<Acc>(factor_);
    for (std::size_t i = 0; i < count; ++i) acc[i] = acc[i] + N::decode(in[i]) * factor;
  }

  static void store(void* out_, const void* acc_, std::size_t count) {
    Stored* __restrict out = static_cast<Stored*>(out_);
    const Acc* __restrict acc = static_cast<const Acc*>(acc_);
    for (std::size_t i = 0; i < count; ++i) out[i] = N::encode(acc[i]);
  }

  static void store_average(void* out_, const void* acc_, std::size_t count, int ranks) {
    // Divide in a wider type: the number of ranks need not fit into an 8-bit accumulator.
    using Wide = std::conditional_t<std::is_floating_point_v<Acc>, Acc, std::int64_t>;
    Stored* __restrict out = static_cast<Stored*>(out_);
    const Acc* __restrict acc = static_cast<const Acc*>(acc_);
    const Wide divisor = static_cast<Wide>(ranks);
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = N::encode(static_cast<Acc>(static_cast<Wide>(acc[i]) / divisor));
    }
  }
};

template <class N, class Op>
bool set_fold(ReduceKernel& kernel) {
  kernel.fold = &Loops<N>::template fold<Op>;
  kernel.fold4 = &Loops<N>::template fold4<Op>;
  return true;
}

template <class N, class Op, class StdOp>
bool set_comparison(ReduceKernel& kernel) {
  if constexpr (std::is_floating_point_v<typename N::Acc>) {
    kernel.has_nan = &Loops<N>::has_nan;
    kernel.fold_like_std = &Loops<N>::template fold<StdOp>;
  }
  return set_fold<N, Op>(kernel);
}

template <class N>
bool find_fold(Fold fold, ReduceKernel& kernel) {
  switch (fold) {
    case Fold::sum:
      return set_fold<N, Sum>(kernel);
    case Fold::product:
      return set_fold<N, Product>(kernel);
    case Fold::min:
      return set_comparison<N, Min, StdMin>(kernel);
    case Fold::max:
      return set_comparison<N, Max, StdMax>(kernel);
    default:
      break;
  }
  if constexpr (!std::is_floating_point_v<typename N::Acc>) {
    switch (fold) {
      case Fold::band:
        return set_fold<N, Band>(kernel);
      case Fold::bor:
        return set_fold<N, Bor>(kernel);
      case Fold::bxor:
        return set_fold<N, Bxor>(kernel);
      default:
        break;
    }
  }
  return false;
}

template <class N>
bool find(Fold fold, ReduceKernel& kernel) {
  kernel.element_bytes = sizeof(typename N::Stored);
  kernel.accumulator_bytes = sizeof(typename N::Acc);
  kernel.load = &Loops<N>::load;
  if constexpr (std::is_floating_point_v<typename N::Acc>) {
    kernel.load_scaled = &Loops<N>::load_scaled;
    kernel.fold_scaled = &Loops<N>::fold_scaled;
  }
  if constexpr (!N::kIdentity) kernel.store = &Loops<N>::store;
  kernel.store_average = &Loops<N>::store_average;
  return find_fold<N>(fold, kernel);
}

}  // namespace

bool find_kernel(Element element, Fold fold, ReduceKernel& kernel) {
  kernel = ReduceKernel{};
  switch (element) {
    case Element::f32:
      return find<Same<float>>(fold, kernel);
    case Element::f64:
      return find<Same<double>>(fold, kernel);
    case Element::f16:
      return find<Half>(fold, kernel);
    case Element::bf16:
      return find<BFloat16>(fold, kernel);
    case Element::f8_e4m3fn:
      return find<Float8E4M3>(fold, kernel);
    case Element::f8_e5m2:
      return find<Float8E5M2>(fold, kernel);
    case Element::i8:
      return find<Same<std::int8_t>>(fold, kernel);
    case Element::u8:
      return find<Same<std::uint8_t>>(fold, kernel);
    case Element::i32:
      return find<Same<std::int32_t>>(fold, kernel);
    case Element::i64:
      return find<Same<std::int64_t>>(fold, kernel);
  }
  return false;
}

}  // namespace rehearse::fakes::REHEARSE_ISA
