// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_world.h"

#include <dlfcn.h>

#include "runner/device_libraries.h"

namespace rehearse::real {

int gpus() {
  static const int count = [] {
    try {
      open_device_libraries();
      return device_count();
    } catch (const RunnerUnavailable&) {
      return 0;
    }
  }();
  return count;
}

void keep_busy(std::chrono::milliseconds duration) {
  // at::cuda::sleep() of libtorch_cuda takes cycles of a clock of at most 2 GHz.
  constexpr std::int64_t kCyclesOfAMillisecond = 2'000'000;
  using Sleep = void (*)(std::int64_t cycles);
  static const auto sleep = reinterpret_cast<Sleep>(::dlsym(RTLD_DEFAULT, "_ZN2at4cuda5sleepEl"));
  ASSERT_NE(sleep, nullptr);
  sleep(duration.count() * kCyclesOfAMillisecond);
}

}  // namespace rehearse::real
