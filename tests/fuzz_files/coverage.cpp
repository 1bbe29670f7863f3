// SPDX-License-Identifier: BSD-3-Clause
// Tells libFuzzer which code an input has reached. g++ calls __sanitizer_cov_trace_pc() in each basic block.
// libFuzzer's own function of that name ends the program, so the linker (--wrap) leads these calls here. After each
// input libFuzzer reads the counters in the section below, and clears them.
#include <cstddef>
#include <cstdint>

namespace {

constexpr unsigned kBits = 16;  // there are fewer blocks than counters
[[gnu::section("__libfuzzer_extra_counters")]] std::uint8_t g_counters[std::size_t{1} << kBits];

}  // namespace

extern "C" void __wrap___sanitizer_cov_trace_pc() {
  const auto block = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  auto& counter = g_counters[(block * 0x9E3779B97F4A7C15u) >> (64 - kBits)];
  if (counter < UINT8_MAX) ++counter;
}

// g++ reports comparisons of floating-point numbers, too. libFuzzer has no use for them.
extern "C" void __sanitizer_cov_trace_cmpf(float, float) {}
extern "C" void __sanitizer_cov_trace_cmpd(double, double) {}
