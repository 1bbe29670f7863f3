// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How stored elements become numbers to compute with, and back. Only reduce_loops.h includes this file, inside the
// namespace of one instruction set. The code uses branch-free integer arithmetic instead of conversion instructions: it
// vectorises everywhere and gives the same bits everywhere.

template <class T>
struct Same {
  using Stored = T;
  using Acc = T;
  static constexpr bool kIdentity = true;
  static Acc decode(Stored x) { return x; }
  static Stored encode(Acc x) { return x; }
};

inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }

struct BFloat16 {
  using Stored = std::uint16_t;
  using Acc = float;
  static constexpr bool kIdentity = false;
  static Acc decode(Stored x) { return float_of(static_cast<std::uint32_t>(x) << 16); }
  static Stored encode(Acc x) {
    const std::uint32_t bits = bits_of(x);
    const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return static_cast<Stored>((bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded);
  }
};

// IEEE-like formats with E exponent bits and M mantissa bits. Finite formats, such as e4m3fn, have no infinities: the
// top exponent holds numbers, except that a magnitude of all ones is a NaN. `TooLarge`: the code of numbers that do not
// fit.
template <class StoredT, int E, int M, bool Finite, std::uint32_t Nan, std::uint32_t TooLarge>
struct Small {
  using Stored = StoredT;
  using Acc = float;
  static constexpr bool kIdentity = false;
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr std::uint32_t kMagnitude = (1u << (E + M)) - 1;
  static constexpr std::uint32_t kInfinity = ((1u << E) - 1) << M;  // for Finite: the first code of the top exponent
  static constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(127 - kBias + 1) << 23;

  static Acc decode(Stored x) {
    const std::uint32_t magnitude = x & kMagnitude;
    const std::uint32_t sign = static_cast<std::uint32_t>(x >> (E + M)) << 31;
    const std::uint32_t normal = (magnitude << (23 - M)) + (static_cast<std::uint32_t>(127 - kBias) << 23);
    const float unit = float_of(static_cast<std::uint32_t>(127 + 1 - kBias - M) << 23);
    const std::uint32_t subnormal = bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * unit);
    std::uint32_t bits = magnitude < (1u << M) ? subnormal : normal;
    if constexpr (Finite) {
      bits = magnitude == Nan ? 0x7FC00000u : bits;
    } else {
      bits = magnitude >= kInfinity ? 0x7F800000u | (magnitude << (23 - M)) : bits;
    }
    return float_of(bits | sign);
  }

  static Stored encode(Acc x) {
    const std::uint32_t bits = bits_of(x);
    const std::uint32_t sign = (bits >> 31) << (E + M);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    // In a number as large as `magic`, the last bit has the value of the smallest subnormal, so the addition rounds to
    // a multiple of it.
    const std::uint32_t magic = static_cast<std::uint32_t>(127 + 1 - kBias - M + 23) << 23;
    const std::uint32_t subnormal = bits_of(float_of(magnitude) + float_of(magic)) - magic;
    const std::uint32_t odd = (magnitude >> (23 - M)) & 1u;
    const std::uint32_t normal =
        (magnitude - (static_cast<std::uint32_t>(127 - kBias) << 23) + ((1u << (22 - M)) - 1u) + odd) >> (23 - M);
    std::uint32_t code = magnitude < kSmallestNormal ? subnormal : normal;
    code = code > TooLarge ? TooLarge : code;
    code = magnitude > 0x7F800000u ? Nan : code;
    return static_cast<Stored>(code | sign);
  }
};

using Half = Small<std::uint16_t, 5, 10, false, 0x7E00, 0x7C00>;
using Float8E5M2 = Small<std::uint8_t, 5, 2, false, 0x7F, 0x7C>;
using Float8E4M3 = Small<std::uint8_t, 4, 3, true, 0x7F, libtorch::kFloat8E4M3Saturates ? 0x7E : 0x7F>;
