// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <torch/headeronly/version.h>

// The only file that asks which LibTorch this is. Code asks for a member or a type instead (backend.h, nodes.h), and
// tables say since and until which minor version a row holds.
namespace rehearse::libtorch {

static_assert(TORCH_VERSION_MAJOR == 2, "minor versions are those of LibTorch 2");

inline constexpr std::string_view kVersion = TORCH_VERSION;
inline constexpr int kMinor = TORCH_VERSION_MINOR;

// Since 2.13, numbers that float8_e4m3fn cannot hold become its largest number instead of a NaN.
inline constexpr bool kFloat8E4M3Saturates = kMinor >= 13;

// Until 2.13, arange() of int64 rounds its arguments towards zero before it computes the length.
inline constexpr bool kRoundsRangesOfInt64 = kMinor <= 13;

// Since 2.13, torch's back end "fake" fills the outputs of all calls. Until then, only those of all-gathers.
inline constexpr bool kFakeGroupsFillOutputs = kMinor >= 13;

// LibTorch's own runner of exported programs, for tests: its functions can be linked until 2.11.
inline constexpr bool kExportsNativert = kMinor <= 11;

// The function that makes a c10d::ReduceOp with a factor, for texts.
inline constexpr std::string_view kMakePreMulSum = kMinor >= 13 ? "makePreMulSum()" : "makeNCCLPreMulSum()";

// The minor versions that have something: all of them, unless a row of a table says otherwise.
struct Minors {
  int since = 0;
  int until = 99;
  constexpr bool contain(int minor) const noexcept { return since <= minor && minor <= until; }
};

}  // namespace rehearse::libtorch
