// SPDX-License-Identifier: BSD-3-Clause
// Tests with LibTorch's libc10_cuda, which loads without a GPU.
#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include <gtest/gtest.h>

#include "core/torch_state/hand_fibers.h"
#include "torch_state/tls/tls_layout.h"

extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) noexcept;

namespace rehearse::torch_state {
namespace {

constexpr const char* kTargetDevice = "_ZN3c104cudaL17targetDeviceIndexE";
constexpr const char* kCurrentStreams = "_ZN3c104cuda12_GLOBAL__N_115current_streamsE";

// No simulation loads the library, so the fixture loads it.
class C10Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string beside = read_tls_module("libc10.so").path;
    const std::string path = beside.substr(0, beside.rfind('/') + 1) + "libc10_cuda.so";
    image_bytes_before_ = is_loaded("libc10_cuda.so") ? 0 : TorchRankState().image_bytes();
    library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library_ == nullptr) GTEST_SKIP() << "libc10_cuda cannot be loaded: " << ::dlerror();
    module_ = read_tls_module("libc10_cuda.so");
  }

  template <class T>
  T& live(const char* symbol) const {
    for (const TlsSymbol& each : module_.symbols) {
      if (each.name == symbol) return *reinterpret_cast<T*>(tls_block_of_this_thread(module_) + each.offset);
    }
    throw std::logic_error(symbol);
  }

  std::size_t image_bytes_before_ = 0;
  void* library_ = nullptr;
  TlsModule module_;
};

TEST_F(C10Cuda, LoadedAfterAnotherObject_IsInTheNextOnesImages) {
  TorchRankState state;
  EXPECT_GT(state.image_bytes(), image_bytes_before_);
  EXPECT_EQ(tls_layout().modules.size(), 3u);
}

TEST_F(C10Cuda, Variables_AreEachFibersOwn) {
  live<signed char>(kTargetDevice) = 5;
  {
    TorchRankState state;
    HandFibers fibers(state, 2);
    fibers.run(0, [&] {
      EXPECT_EQ(live<signed char>(kTargetDevice), -1);
      live<signed char>(kTargetDevice) = 1;
    });
    fibers.run(1, [&] { EXPECT_EQ(live<signed char>(kTargetDevice), -1); });
    fibers.run(0, [&] { EXPECT_EQ(live<signed char>(kTargetDevice), 1); });
    EXPECT_EQ(live<signed char>(kTargetDevice), 5);
  }
  live<signed char>(kTargetDevice) = -1;
}

// LibTorch creates the array of current streams only if there is a GPU. So this test makes an array itself, and
// registers the array's destructor as LibTorch does.
TEST_F(C10Cuda, CurrentStreams_DieWithTheirFiber) {
  static int deaths = 0;
  deaths = 0;
  TorchRankState state;
  HandFibers fibers(state, 2);
  fibers.run(0, [&] {
    EXPECT_EQ(live<void*>(kCurrentStreams), nullptr);
    live<void*>(kCurrentStreams) = this;
    const auto destroy = [](void* streams) {
      ++deaths;
      *static_cast<void**>(streams) = nullptr;
    };
    __cxa_thread_atexit(destroy, &live<void*>(kCurrentStreams), nullptr);
  });
  fibers.run(1, [&] { EXPECT_EQ(live<void*>(kCurrentStreams), nullptr); });
  fibers.run(0, [&] { EXPECT_EQ(live<void*>(kCurrentStreams), this); });
  fibers.end(1);
  EXPECT_EQ(deaths, 0);
  fibers.end(0);
  EXPECT_EQ(deaths, 1);
}

}  // namespace
}  // namespace rehearse::torch_state
