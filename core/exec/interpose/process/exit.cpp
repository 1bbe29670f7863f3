// SPDX-License-Identifier: BSD-3-Clause
// To its program, a rank is a process, and the program may end this process by exit() and the like or by
// std::terminate(). The real functions would end all ranks and destroy objects that other ranks still use. Here the
// calling rank fails instead.
#include <rehearse_internal/exec/process_exit.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/crash.h>
#include <rehearse_internal/exec/failure.h>
#include <unistd.h>

#include "exec/call_site/failure_text.h"
#include "exec/executor/rank_life.h"
#include "exec/fiber/native_section.h"
#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec {
namespace {

constinit std::atomic<const ProcessExitHandler::Handler*> g_exit_handler{nullptr};
constinit std::atomic<pid_t> g_exit_handled_in{0};
std::terminate_handler g_terminate_before = nullptr;

// Calls the handler at most once, because the handler itself may end the process.
void tell_handler(const std::string& what) {
  if (g_exit_handled_in != getpid()) return;
  if (const auto* const handler = g_exit_handler.exchange(nullptr)) (*handler)(what);
}

bool is_end_of_world(const std::exception_ptr& error) {
  try {
    if (error != nullptr) std::rethrow_exception(error);
  } catch (const RankAborted&) {
    return true;
  } catch (...) {  // another error
  }
  return false;
}

[[noreturn]] void on_terminate() {
  const auto error = std::current_exception();
  // RankAborted has reached a noexcept function. That is no failure of this rank: the thread that ended the world will
  // end the process.
  while (g_exit_handled_in == getpid() && g_exit_handler != nullptr && is_end_of_world(error)) ::pause();
  tell_handler(terminate_text(error));
  if (g_terminate_before != nullptr) g_terminate_before();
  std::abort();
}

}  // namespace

ProcessExitHandler::ProcessExitHandler(Handler handler) : handler_(std::move(handler)) {
  g_exit_handled_in = getpid();
  g_exit_handler = &handler_;
  g_terminate_before = std::set_terminate(on_terminate);
}

ProcessExitHandler::~ProcessExitHandler() {
  g_exit_handler = nullptr;
  if (std::get_terminate() == on_terminate) std::set_terminate(g_terminate_before);
}

namespace interpose {

[[noreturn]] void exit_here(int status) REHEARSE_INTERPOSES("exit");
[[noreturn]] void exit_quick_exit(int status) REHEARSE_INTERPOSES("quick_exit");
[[noreturn]] void exit_at_once(int status) REHEARSE_INTERPOSES("_exit");
[[noreturn]] void exit_at_once_in_c(int status) REHEARSE_INTERPOSES("_Exit");

namespace {

constinit Real<void (*)(int)> real_exit("exit");
constinit Real<void (*)(int)> real_quick_exit("quick_exit");
constinit Real<void (*)(int)> real_exit_at_once("_exit");

std::string ended_by(const char* function, int status) {
  return fmt::format("{}({}) was called; a rank ends by returning from its body, or fails by an exception", function,
                     status);
}

// Returns if the calling thread runs no fiber, for example a helper thread of an OpenMP region.
void fail_current_fiber(const std::string& what) {
  Fiber* const fiber = current_fiber() != nullptr ? current_fiber() : NativeSection::abandon();
  if (fiber == nullptr) return;
  try {
    throw std::runtime_error(what);  // thrown, so that reports know the call site
  } catch (...) {
    fiber->world->rank_life.terminate(*fiber);
  }
}

// Returns if the real function must end this process: outside of ranks, on a helper thread of an OpenMP region, and in
// a process that a rank has forked.
void fail_rank(const char* function, int status) {
  const Fiber* const caller = fiber_of_thread();
  if (caller == nullptr) return tell_handler(ended_by(function, status));
  if (getpid() != caller->world->process) return;
  fail_current_fiber(ended_by(function, status));
}

}  // namespace

void exit_here(int status) {
  if (g_exit_handler != nullptr) std::fflush(nullptr);  // as exit() does
  fail_rank("exit", status);
  if (current_fiber() == nullptr) real_exit(status);
  // This is a forked process. No destructor may run on its copy of the world, because we are on a stack of that world.
  std::fflush(nullptr);
  real_exit_at_once(status);
  __builtin_unreachable();
}

void exit_quick_exit(int status) {
  fail_rank("quick_exit", status);
  real_quick_exit(status);
  __builtin_unreachable();
}

void exit_at_once(int status) {
  fail_rank("_exit", status);
  real_exit_at_once(status);
  __builtin_unreachable();
}

void exit_at_once_in_c(int status) { exit_at_once(status); }

std::span<const Interposed> exit_functions() {
  static const std::array functions = {
      Interposed{"exit", reinterpret_cast<const void*>(exit_here)},
      Interposed{"quick_exit", reinterpret_cast<const void*>(exit_quick_exit)},
      Interposed{"_exit", reinterpret_cast<const void*>(exit_at_once)},
      Interposed{"_Exit", reinterpret_cast<const void*>(exit_at_once_in_c)},
  };
  return functions;
}

}  // namespace interpose

void exit_rank(int status, const std::string& call) {
  interpose::fail_current_fiber(fmt::format("exit({}) was called in {}: an injected exit", status, call));
  REHEARSE_CHECK(false, call);
  __builtin_unreachable();
}

}  // namespace rehearse::exec
