// SPDX-License-Identifier: BSD-3-Clause
// Contract: libcudart calls that wait for a device reach our functions, also from a library opened at run time. In a
// rank, our functions let other ranks run; elsewhere they call libcudart. The caller gets libcudart's results.
#include "interpose/cuda_calls.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>

#include "interpose/launches.h"
#include "real/interpose/fake_cudart.h"
#include "real/interpose/waiting_world.h"

namespace rehearse::real {
namespace {

using exec::Ending;

const auto kStream = reinterpret_cast<cudaStream_t>(std::uintptr_t{4});
const auto kEvent = reinterpret_cast<cudaEvent_t>(std::uintptr_t{8});

CudartUser open_user() {
  void* const library = ::dlopen(CUDART_USER, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<decltype(&make_cudart_user)>(::dlsym(library, "make_cudart_user"))();
}

class CudaCalls : public ::testing::Test {
 protected:
  CudaCalls() {
    cuda.reset();
    user.set_device(0);
    cuda.device_changes = 0;
  }

  // Rank 0 makes the call while its device is busy. Rank 1 runs meanwhile, and then lets the device finish.
  cudaError_t in_rank(const std::function<cudaError_t()>& call) {
    cuda.busy = true;
    cudaError_t result = cudaErrorUnknown;
    const auto outcome = world.run(2, [&](int rank) {
      if (rank == 0) {
        result = call();
        order.push_back("call");
        return;
      }
      for (int k = 0; k < 20; ++k) exec::this_rank::yield();
      order.push_back("other rank");
      cuda.busy = false;
    });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
    return result;
  }

  void expect_others_ran(const std::function<cudaError_t()>& call) {
    EXPECT_EQ(in_rank(call), cudaSuccess);
    EXPECT_EQ(order, (std::vector<std::string>{"other rank", "call"}));
    EXPECT_EQ(cuda.last_error, cudaSuccess);
    EXPECT_EQ(cuda.events, 0);
  }

  FakeCudart& cuda = *fake_cudart();
  const CudartUser user = open_user();
  WaitingWorld world;
  std::vector<std::string> order;
  char host[8] = {};
  char device[8] = {7, 7, 7, 7, 7, 7, 7, 7};
};

TEST_F(CudaCalls, StreamSynchronize_LetsOthersRun) {
  expect_others_ran([&] { return user.stream_synchronize(kStream); });
  EXPECT_EQ(cuda.stream_synchronizes, 0);
}

TEST_F(CudaCalls, StreamOfAnotherDevice_IsWaitedForAsWell) {
  cuda.of_another_device = kStream;
  expect_others_ran([&] { return user.stream_synchronize(kStream); });
}

TEST_F(CudaCalls, EventSynchronize_LetsOthersRun) {
  expect_others_ran([&] { return user.event_synchronize(kEvent); });
  EXPECT_EQ(cuda.event_synchronizes, 0);
}

TEST_F(CudaCalls, DeviceSynchronize_IsMadeByAThreadOfItsOwn) {
  expect_others_ran([&] { return user.device_synchronize(); });
  EXPECT_EQ(cuda.device_synchronizes, 1);
}

TEST_F(CudaCalls, Memcpy_WaitsForTheDefaultStreamFirst) {
  expect_others_ran([&] { return user.memcpy(host, device, sizeof host, cudaMemcpyDeviceToHost); });
  EXPECT_EQ(cuda.copies, 1);
  EXPECT_EQ(cuda.blocked, 0);
  EXPECT_EQ(host[3], 7);
}

TEST_F(CudaCalls, MemcpyAsyncToPageableMemory_WaitsForItsStreamFirst) {
  expect_others_ran([&] { return user.memcpy_async(host, device, sizeof host, cudaMemcpyDeviceToHost, kStream); });
  EXPECT_EQ(cuda.copies, 1);
  EXPECT_EQ(cuda.blocked, 0);
  EXPECT_EQ(host[3], 7);
}

TEST_F(CudaCalls, MemcpyAsyncOfMuchPageableMemory_WaitsForItsStreamFirst) {
  std::vector<char> from((64 << 10) + 1, 5), to(from.size());
  expect_others_ran(
      [&] { return user.memcpy_async(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice, kStream); });
  EXPECT_EQ(to.back(), 5);
}

// Whatever memory it is: CUDA copies from host to host on the calling thread.
TEST_F(CudaCalls, MemcpyAsyncFromHostToHost_WaitsForItsStreamFirst) {
  for (const void* pinned : {static_cast<const void*>(nullptr), static_cast<const void*>(host)}) {
    cuda.pinned = pinned;
    order.clear();
    expect_others_ran([&] { return user.memcpy_async(host, device, sizeof host, cudaMemcpyHostToHost, kStream); });
  }
  EXPECT_EQ(cuda.blocked, 0);
  EXPECT_EQ(host[3], 7);
}

TEST_F(CudaCalls, MemcpyAsyncThatDoesNotWait_IsNotWaitedFor) {
  cuda.pinned = host;
  const std::vector<std::string> at_once{"call", "other rank"};
  EXPECT_EQ(in_rank([&] { return user.memcpy_async(host, device, 8, cudaMemcpyDeviceToHost, kStream); }), cudaSuccess);
  EXPECT_EQ(order, at_once);
  order.clear();
  EXPECT_EQ(in_rank([&] { return user.memcpy_async(device, host, 8, cudaMemcpyHostToDevice, kStream); }), cudaSuccess);
  EXPECT_EQ(order, at_once);
  order.clear();
  EXPECT_EQ(in_rank([&] { return user.memcpy_async(device, host, 8, cudaMemcpyDeviceToDevice, kStream); }),
            cudaSuccess);
  EXPECT_EQ(order, at_once);
}

TEST_F(CudaCalls, Launches_OfRanksTakeTurns) {
  constexpr int kEach = 3 * kLaunchesOfATurn;
  const auto outcome = world.run(2, [&](int rank) {
    for (int k = 0; k < kEach; ++k) EXPECT_EQ(user.launch(rank), cudaSuccess);
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  ASSERT_EQ(cuda.launches.size(), 2u * kEach);
  // No rank launches more than a turn's number of kernels while the other rank has kernels to launch.
  int in_a_row = 1;
  for (std::size_t k = 1; k + kLaunchesOfATurn < cuda.launches.size(); ++k) {
    in_a_row = cuda.launches[k] == cuda.launches[k - 1] ? in_a_row + 1 : 1;
    EXPECT_LE(in_a_row, kLaunchesOfATurn) << k;
  }
}

TEST_F(CudaCalls, IdleStream_IsNotWaitedFor) {
  const auto outcome = world.run(1, [&](int) { EXPECT_EQ(user.stream_synchronize(kStream), cudaSuccess); });
  EXPECT_EQ(outcome.switches, 1u);
}

TEST_F(CudaCalls, Errors_AreTheCallers) {
  cuda.error = cudaErrorIllegalAddress;
  const std::function<cudaError_t()> calls[] = {
      [&] { return user.stream_synchronize(kStream); },
      [&] { return user.event_synchronize(kEvent); },
      [&] { return user.memcpy(host, device, 8, cudaMemcpyDeviceToHost); },
      [&] { return user.memcpy_async(host, device, 8, cudaMemcpyDeviceToHost, kStream); },
      [&] { return user.set_device(1); },
  };
  for (const auto& call : calls) {
    EXPECT_EQ(in_rank(call), cudaErrorIllegalAddress);
    EXPECT_EQ(call(), cudaErrorIllegalAddress);
  }
}

TEST_F(CudaCalls, ErrorOfADevice_IsTheCallers) {
  cuda.busy = true;
  cudaError_t result = cudaSuccess;
  world.run(2, [&](int rank) {
    if (rank == 0) {
      result = user.device_synchronize();
      return;
    }
    exec::this_rank::yield();
    cuda.error = cudaErrorLaunchFailure;
    cuda.busy = false;
  });
  EXPECT_EQ(result, cudaErrorLaunchFailure);
}

TEST_F(CudaCalls, OutsideOfRanks_AreLibcudarts) {
  EXPECT_EQ(user.stream_synchronize(kStream), cudaSuccess);
  EXPECT_EQ(user.event_synchronize(kEvent), cudaSuccess);
  EXPECT_EQ(user.device_synchronize(), cudaSuccess);
  EXPECT_EQ(user.memcpy(host, device, 8, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cuda.stream_synchronizes, 1);
  EXPECT_EQ(cuda.event_synchronizes, 1);
  EXPECT_EQ(cuda.device_synchronizes, 1);
  EXPECT_EQ(cuda.copies, 1);
  EXPECT_EQ(host[3], 7);
}

TEST_F(CudaCalls, InANativeScope_AreLibcudarts) {
  world.run(1, [&](int) {
    const exec::NativeScope native;
    EXPECT_EQ(user.stream_synchronize(kStream), cudaSuccess);
  });
  EXPECT_EQ(cuda.stream_synchronizes, 1);
}

TEST_F(CudaCalls, WorldThatEnds_TakesTheCallerAlong) {
  cuda.busy = true;
  bool returned = false;
  const auto outcome = world.run(2, [&](int rank) {
    if (rank == 1) throw std::runtime_error("rank 1 has had enough");
    user.stream_synchronize(kStream);
    returned = true;
  });
  EXPECT_EQ(outcome.ranks[0], exec::RankEnd::aborted);
  EXPECT_FALSE(returned);
  ASSERT_EQ(outcome.blocked.size(), 1u);
  EXPECT_EQ(outcome.blocked[0].waits_on, "cudaStreamSynchronize()");
  EXPECT_EQ(cuda.events, 0);
}

TEST_F(CudaCalls, CurrentDevice_IsKnownFromItsChanges) {
  EXPECT_EQ(user.set_device(2), cudaSuccess);
  EXPECT_EQ(exchange_cuda_device(1), 2);
  EXPECT_EQ(exchange_cuda_device(1), 1);
  EXPECT_EQ(cuda.current_device, 1);
  EXPECT_EQ(cuda.device_changes, 2);
  EXPECT_EQ(cuda.device_questions, 0);
}

TEST_F(CudaCalls, CurrentDeviceOfAThreadThatChangedNone_IsAskedForOnce) {
  cuda.current_device = 3;
  std::thread([] {
    EXPECT_EQ(exchange_cuda_device(1), 3);
    EXPECT_EQ(exchange_cuda_device(3), 1);
  }).join();
  EXPECT_EQ(cuda.device_questions, 1);
}

}  // namespace
}  // namespace rehearse::real
