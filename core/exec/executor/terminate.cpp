// SPDX-License-Identifier: BSD-3-Clause
#include "terminate.h"

#include <cstdlib>
#include <exception>

#include "exec/fiber/native_section.h"
#include "rank_life.h"
#include "world_parts.h"

namespace rehearse::exec {
namespace {

std::terminate_handler g_previous_terminate = nullptr;

[[noreturn]] void on_terminate() {
  // A terminate handler must not return, but need not end the process. If a fiber of a rank terminates, it stays
  // suspended forever.
  if (current_fiber() == nullptr) NativeSection::abandon();
  if (Fiber* const fiber = current_fiber()) fiber->world->rank_life.terminate(*fiber);
  if (g_previous_terminate != nullptr) g_previous_terminate();
  std::abort();
}

}  // namespace

void install_terminate_handler() {
  static const bool installed = [] {
    g_previous_terminate = std::set_terminate(on_terminate);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace rehearse::exec
