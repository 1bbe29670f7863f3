// SPDX-License-Identifier: BSD-3-Clause
// Contract: state that LibTorch's own CUDA libraries keep per thread and per process is a rank's own. CMakeLists.txt
// says how this works without a GPU. tests/real/gpu tests it on GPUs.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/torch_state/hand_fibers.h"
#include "real/torch_cuda/cuda_runtime.h"
#include "torch_state/tls/tls_layout.h"

namespace rehearse::real {
namespace {

using torch_state::HandFibers;
using torch_state::TorchRankState;
using torch_state::TorchStateError;
using torch_state::TorchStateOptions;

c10::Device device(int index) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)}; }

TorchStateOptions on_devices() {
  TorchStateOptions options;
  options.seed = 5;
  options.devices = {device(1), device(2)};
  return options;
}

// The reason why libtorch_cuda cannot be loaded; empty if it is loaded.
std::string load_libtorch_cuda() {
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == nullptr) {
    if (::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) return "a driver is here, and gpu_test tries the real one";
    for (const auto& file : std::filesystem::directory_iterator(STAND_INS))
      if (::dlopen(file.path().c_str(), RTLD_LAZY | RTLD_GLOBAL) == nullptr) return ::dlerror();
  }
  const std::string beside = torch_state::read_tls_module("libc10.so").path;
  const auto path = beside.substr(0, beside.rfind('/') + 1) + "libtorch_cuda.so";
  return ::dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr ? "" : ::dlerror();
}

class TorchCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    static const std::string missing = load_libtorch_cuda();
    if (!missing.empty()) GTEST_SKIP() << missing;
    cuda_runtime = {};
  }

  static c10::impl::VirtualGuardImpl guard() { return {c10::kCUDA}; }
  static const at::Generator& generator(int index) { return at::globalContext().defaultGenerator(device(index)); }
};

constexpr int kSkipped = 77;

// Needs a process that has loaded nothing yet. GoogleTest runs suites whose names end in DeathTest first.
[[noreturn]] void load_after_libtorch_was_asked() {
  const bool asked = at::hasCUDA();
  if (const auto missing = load_libtorch_cuda(); !missing.empty()) std::exit(kSkipped);
  try {
    const TorchRankState state(on_devices());
  } catch (const TorchStateError& error) {
    std::fputs(error.what(), stderr);
    std::exit(!asked && error.reason() == TorchStateError::Reason::loaded_late ? 0 : 1);
  }
  std::exit(2);
}

TEST(TorchCudaDeathTest, LoadedAfterLibTorchWasAsked_IsRefused) {
  const auto as_it_should = [](int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kSkipped);
  };
  EXPECT_EXIT(load_after_libtorch_was_asked(), as_it_should, "^$|Load it before anything else of LibTorch runs");
}

TEST_F(TorchCuda, BothLibraries_AreInTheLayout) {
  const TorchRankState state(on_devices());
  std::vector<std::string> names;
  for (const auto& module : torch_state::tls_layout().modules)
    names.push_back(std::filesystem::path(module.path).filename());
  EXPECT_THAT(names, testing::ElementsAre("libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"));
}

TEST_F(TorchCuda, CurrentDevice_IsTheRanksAndChangedByOneCall) {
  TorchRankState state(on_devices());
  HandFibers fibers(state, 2);
  for (int rank : {0, 1}) fibers.run(rank, [&] { EXPECT_EQ(guard().getDevice(), device(rank + 1)); });
  EXPECT_EQ(guard().getDevice(), device(0));
  cuda_runtime = {};
  fibers.run(0, [] {});
  EXPECT_EQ(cuda_runtime.changes, 2);
  EXPECT_EQ(cuda_runtime.questions, 2);
}

TEST_F(TorchCuda, DeviceGuardOfAFiber_HoldsAcrossSwitches) {
  TorchRankState state(on_devices());
  HandFibers fibers(state, 2);
  std::optional<c10::DeviceGuard> other;
  fibers.run(0, [&] { other.emplace(device(0)); });
  fibers.run(1, [] { EXPECT_EQ(guard().getDevice(), device(2)); });
  fibers.run(0, [&] {
    EXPECT_EQ(guard().getDevice(), device(0));
    other.reset();
    EXPECT_EQ(guard().getDevice(), device(1));
  });
}

TEST_F(TorchCuda, CurrentStreams_AreTheFibersOwn) {
  TorchRankState state(on_devices());
  HandFibers fibers(state, 2);
  const auto own = guard().getStreamFromGlobalPool(device(1));
  fibers.run(0, [&] { EXPECT_EQ(guard().exchangeStream(own), guard().getDefaultStream(device(1))); });
  fibers.run(1, [&] { EXPECT_EQ(guard().getStream(device(1)), guard().getDefaultStream(device(1))); });
  fibers.run(0, [&] { EXPECT_EQ(guard().getStream(device(1)), own); });
  EXPECT_EQ(guard().getStream(device(1)), guard().getDefaultStream(device(1)));
}

TEST_F(TorchCuda, CurrentStreams_DieWithTheirFiber) {
  TorchRankState state(on_devices());
  const auto round = [&] {
    HandFibers fibers(state, 2);
    for (int rank : {0, 1}) fibers.run(rank, [] { guard().getStream(device(0)); });
  };
  for (int k = 0; k < 50; ++k) round();
  const std::size_t before = mallinfo2().uordblks;
  for (int k = 0; k < 1000; ++k) round();
  EXPECT_LT(mallinfo2().uordblks, before + 16 * 1024);  // streams that stayed would take 64 KB
}

TEST_F(TorchCuda, ManualSeedOnOneRank_LeavesOthersAndTheHostAlone) {
  const at::Generator host = generator(1);
  const std::uint64_t host_seed = host.current_seed();
  {
    TorchRankState state(on_devices());
    HandFibers fibers(state, 2);
    fibers.run(0, [] { at::manual_seed(9); });
    for (int index = 0; index < CudaRuntime::kDevices; ++index) {
      fibers.run(1, [&] { EXPECT_EQ(generator(index).current_seed(), 5u); });
      fibers.run(0, [&] { EXPECT_EQ(generator(index).current_seed(), 9u); });
    }
  }
  EXPECT_EQ(generator(1), host);
  EXPECT_EQ(host.current_seed(), host_seed);
}

}  // namespace
}  // namespace rehearse::real
