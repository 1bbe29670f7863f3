// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/inter_op_pool.h"

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <dlfcn.h>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/util/Logging.h>
#include <torch/csrc/autograd/engine.h>

#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/this_rank.h>

#define REHEARSE_LAUNCH "_ZN2at6launchESt8functionIFvvEE"
#define REHEARSE_ADD_TASK "_ZN5torch8autograd6Engine20add_thread_pool_taskERKSt8weak_ptrINS0_9GraphTaskEE"
#define REHEARSE_ADD_TASK_2_14 "_ZN5torch8autograd6Engine20add_thread_pool_taskESt8weak_ptrINS0_9GraphTaskEE"

namespace rehearse::torch_state {

using GraphTaskPtr = std::weak_ptr<torch::autograd::GraphTask>;

// The dynamic linker prefers an executable's definitions to LibTorch's, also for calls that LibTorch makes. In the ABI,
// an object with a destructor that is passed by value is the address of an object that the caller owns. Therefore one
// function takes the graph task by reference, as until LibTorch 2.13, and by value.
void launch(std::function<void()>* task) __asm__(REHEARSE_LAUNCH) __attribute__((visibility("default"), used));
void add_thread_pool_task(torch::autograd::Engine* engine, const GraphTaskPtr& graph_task) __asm__(REHEARSE_ADD_TASK)
    __attribute__((visibility("default"), used));
void add_thread_pool_task_2_14(torch::autograd::Engine*, const GraphTaskPtr&) __asm__(REHEARSE_ADD_TASK_2_14)
    __attribute__((visibility("default"), used, alias(REHEARSE_ADD_TASK)));

namespace {

// Runs a task as c10::ThreadPool does: logs its exceptions. Only RankAborted leaves this function.
void run_as_pool(const std::function<void()>& task, const at::ThreadLocalState& state) {
  const at::ThreadLocalStateGuard guard(state);
  try {
    task();
  } catch (const RankAborted&) {
    throw;
  } catch (const std::exception& error) {
    LOG(ERROR) << "Exception in thread pool task: " << error.what();
  } catch (...) {
    LOG(ERROR) << "Exception in thread pool task: unknown";
  }
}

}  // namespace

void launch(std::function<void()>* task) {
  if (exec::this_rank::is_fiber()) {
    std::thread([task = std::move(*task), state = at::ThreadLocalState()] { run_as_pool(task, state); }).detach();
    return;
  }
  static const auto next = reinterpret_cast<void (*)(std::function<void()>*)>(dlsym(RTLD_NEXT, REHEARSE_LAUNCH));
  next(task);
}

void add_thread_pool_task(torch::autograd::Engine* engine, const GraphTaskPtr& graph_task) {
  if (exec::this_rank::is_fiber()) {
    throw std::runtime_error(
        "rank " + std::to_string(exec::this_rank::rank()) +
        " calls backward() inside of backward(), nested so deep that LibTorch would go on in a thread of the process. "
        "Rehearse runs no such thread for a rank. Nest less deeply, or compute the inner gradients outside of "
        "backward()");
  }
  static void* const until_2_13 = dlsym(RTLD_NEXT, REHEARSE_ADD_TASK);
  static const auto next = reinterpret_cast<void (*)(torch::autograd::Engine*, const GraphTaskPtr&)>(
      until_2_13 != nullptr ? until_2_13 : dlsym(RTLD_NEXT, REHEARSE_ADD_TASK_2_14));
  next(engine, graph_task);
}

std::vector<Interposed> interposed_pools() {
  return {{"at::launch()",
           "a thread of LibTorch's pools would be a rank's and end with its world",
           {{REHEARSE_LAUNCH, reinterpret_cast<void*>(&launch)}}},
          {"torch::autograd::Engine::add_thread_pool_task()",
           "a deeply nested backward would go on in a thread that belongs to no rank",
           {{REHEARSE_ADD_TASK, reinterpret_cast<void*>(&add_thread_pool_task)},
            {REHEARSE_ADD_TASK_2_14, reinterpret_cast<void*>(&add_thread_pool_task)}}}};
}

}  // namespace rehearse::torch_state
