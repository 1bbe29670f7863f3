// SPDX-License-Identifier: BSD-3-Clause
// Contract: every instruction set gives the same bits, and narrow floats convert as c10's types do, for every value.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "reduce/reduce_kernels.h"

namespace rehearse::fakes {
namespace {

constexpr Element kElements[] = {Element::f32,     Element::f64, Element::f16, Element::bf16, Element::f8_e4m3fn,
                                 Element::f8_e5m2, Element::i8,  Element::u8,  Element::i32,  Element::i64};
constexpr Fold kFolds[] = {Fold::sum, Fold::product, Fold::min, Fold::max, Fold::band, Fold::bor, Fold::bxor};

// Random bits. Floating-point elements have the highest bit of their exponent cleared, so none is NaN or infinite. The
// payload of a sum of two NaNs would depend on the compiler's order of operands.
std::vector<std::byte> random_bits(Element element, std::size_t count, std::size_t element_bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bits(count * element_bytes);
  for (auto& byte : bits) byte = static_cast<std::byte>(random());
  const auto keep_finite = [&](std::size_t byte_in_element, unsigned mask) {
    for (std::size_t i = 0; i < count; ++i) bits[i * element_bytes + byte_in_element] &= static_cast<std::byte>(mask);
  };
  switch (element) {
    case Element::f32:
      keep_finite(3, 0xBF);
      break;
    case Element::f64:
      keep_finite(7, 0xBF);
      break;
    case Element::f16:
    case Element::bf16:
      keep_finite(1, 0xBF);
      break;
    case Element::f8_e4m3fn:
    case Element::f8_e5m2:
      keep_finite(0, 0xBF);
      break;
    default:
      break;
  }
  return bits;
}

struct Case {
  Element element;
  Fold fold;
  bool average = false;
  bool scaled = false;
};

std::vector<std::byte> reduced_with(FindKernel find, const Case& run, std::size_t count) {
  ReduceKernel kernel;
  if (!find(run.element, run.fold, kernel)) return {};
  if (run.scaled && kernel.load_scaled == nullptr) return {};
  std::vector<std::vector<std::byte>> in;
  const void* pointers[6];
  for (unsigned r = 0; r < 6; ++r) {
    in.push_back(random_bits(run.element, count, kernel.element_bytes, r));
    pointers[r] = in[r].data();
  }
  std::vector<std::byte> acc(count * kernel.accumulator_bytes + 64);
  void* const aligned = acc.data() + (64 - reinterpret_cast<std::uintptr_t>(acc.data()) % 64) % 64;
  if (run.scaled) {
    kernel.load_scaled(aligned, pointers[0], count, 0.3);
    for (int r = 1; r < 6; ++r) kernel.fold_scaled(aligned, pointers[r], count, 0.7 * r);
  } else {
    kernel.load(aligned, pointers[0], count);
    kernel.fold4(aligned, pointers + 1, count);
    kernel.fold(aligned, pointers[5], count);
  }
  std::vector<std::byte> out(count * kernel.element_bytes);
  if (run.average) {
    kernel.store_average(out.data(), aligned, count, 6);
  } else if (kernel.store != nullptr) {
    kernel.store(out.data(), aligned, count);
  } else {
    std::memcpy(out.data(), aligned, out.size());
  }
  return out;
}

TEST(ReduceKernels, EveryInstructionSet_SameBits) {
  std::size_t sets = 0;
  const InstructionSet* const all = instruction_sets(sets);
  for (const Element element : kElements) {
    for (const Fold fold : kFolds) {
      for (const auto& run : {Case{element, fold}, Case{element, fold, true}, Case{element, fold, false, true}}) {
        const auto expected = reduced_with(all[sets - 1].find, run, 1003);
        for (std::size_t s = 0; s + 1 < sets; ++s) {
          if (!all[s].runs_here) continue;
          EXPECT_EQ(reduced_with(all[s].find, run, 1003), expected)
              << all[s].name << " element " << static_cast<int>(element) << " fold " << static_cast<int>(fold);
        }
      }
    }
  }
}

// If `in` or `acc` is NaN, std::min(in, acc) and std::max(in, acc) return `in`.
TEST(ReduceKernels, FoldLikeStd_KeepsTheInputWhereOneIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> acc, in;
  for (int i = 0; i < 100; ++i) {
    acc.push_back(i % 3 == 0 ? nan : static_cast<float>(i % 5));
    in.push_back(i % 4 == 0 ? nan : static_cast<float>(i % 7));
  }
  std::size_t sets = 0;
  const InstructionSet* const all = instruction_sets(sets);
  for (std::size_t s = 0; s < sets; ++s) {
    if (!all[s].runs_here) continue;
    for (const Fold fold : {Fold::min, Fold::max}) {
      ReduceKernel kernel;
      ASSERT_TRUE(all[s].find(Element::f32, fold, kernel));
      auto result = acc;
      EXPECT_TRUE(kernel.has_nan(result.data(), result.size()));
      EXPECT_FALSE(kernel.has_nan(result.data() + 1, 2));
      kernel.fold_like_std(result.data(), in.data(), in.size());
      for (std::size_t i = 0; i < in.size(); ++i) {
        const float expected = fold == Fold::min ? std::min(in[i], acc[i]) : std::max(in[i], acc[i]);
        EXPECT_TRUE(result[i] == expected || (std::isnan(result[i]) && std::isnan(expected))) << all[s].name << i;
      }
    }
  }
}

template <class Narrow, class Bits>
void check_conversions(Element element) {
  std::vector<float> wide;
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += 4093) {
    const auto word = static_cast<std::uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof(value));
    wide.push_back(value);
  }
  // The exact ties between neighbours, which show rounding to even.
  for (std::uint32_t code = 0; code + 1 < (1u << (8 * sizeof(Bits))); ++code) {
    Narrow low, high;
    const Bits low_bits = static_cast<Bits>(code), high_bits = static_cast<Bits>(code + 1);
    std::memcpy(&low, &low_bits, sizeof(low));
    std::memcpy(&high, &high_bits, sizeof(high));
    wide.push_back((static_cast<float>(low) + static_cast<float>(high)) / 2);
    wide.push_back(static_cast<float>(low));
  }
  std::size_t sets = 0;
  const InstructionSet* const all = instruction_sets(sets);
  for (std::size_t s = 0; s < sets; ++s) {
    if (!all[s].runs_here) continue;
    ReduceKernel kernel;
    ASSERT_TRUE(all[s].find(element, Fold::sum, kernel));
    std::vector<Bits> stored(wide.size());
    std::vector<float> loaded(wide.size());
    kernel.store(stored.data(), wide.data(), wide.size());
    kernel.load(loaded.data(), stored.data(), stored.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const Narrow expected(wide[i]);
      Bits expected_bits;
      std::memcpy(&expected_bits, &expected, sizeof(expected_bits));
      const auto back = static_cast<float>(expected);
      if (std::isnan(back)) {
        ASSERT_TRUE(std::isnan(loaded[i])) << all[s].name << " of " << wide[i];
      } else {
        ASSERT_EQ(stored[i], expected_bits) << all[s].name << " of " << wide[i];
        ASSERT_EQ(loaded[i], back) << all[s].name;
      }
    }
  }
}

TEST(ReduceKernels, Half_ConvertsAsC10) { check_conversions<c10::Half, std::uint16_t>(Element::f16); }
TEST(ReduceKernels, BFloat16_ConvertsAsC10) { check_conversions<c10::BFloat16, std::uint16_t>(Element::bf16); }
TEST(ReduceKernels, Float8E4M3_ConvertsAsC10) {
  check_conversions<c10::Float8_e4m3fn, std::uint8_t>(Element::f8_e4m3fn);
}
TEST(ReduceKernels, Float8E5M2_ConvertsAsC10) { check_conversions<c10::Float8_e5m2, std::uint8_t>(Element::f8_e5m2); }

}  // namespace
}  // namespace rehearse::fakes
