// SPDX-License-Identifier: BSD-3-Clause
#include "scheduler.h"

#include <utility>

#include <boost/fiber/operations.hpp>
#include <boost/fiber/type.hpp>

#include "switcher.h"
#include "world_parts.h"

namespace rehearse::exec {

Scheduler& Scheduler::of_this_thread() {
  // Boost owns the algorithm and keeps it until the thread ends.
  thread_local Scheduler* const scheduler = [] {
    auto* const made = new Scheduler;
    boost::fibers::context::active()->get_scheduler()->set_algo(made);
    return made;
  }();
  return *scheduler;
}

void Scheduler::awakened(boost::fibers::context* context, FiberProperties& properties) noexcept {
  if (context->is_context(boost::fibers::type::dispatcher_context)) {
    dispatcher_ = context;
    return;
  }
  if (expected_ != nullptr) {
    properties.fiber = std::exchange(expected_, nullptr);
    properties.fiber->context = context;
  }
  if (properties.fiber != nullptr) {
    properties.fiber->world->switcher.make_runnable(*properties.fiber);
  } else {
    foreign_.push_back(context);
  }
}

boost::fibers::context* Scheduler::take_dispatcher() noexcept { return std::exchange(dispatcher_, nullptr); }

REHEARSE_LEAVES_STACK boost::fibers::context* Scheduler::pick_next() noexcept {
  if (dispatcher_due_) {
    dispatcher_due_ = false;
    return take_dispatcher();
  }
  if (switcher != nullptr) return switcher->pick_next();
  if (foreign_.empty()) return take_dispatcher();
  auto* const next = foreign_.front();
  foreign_.pop_front();
  return next;
}

void Scheduler::run_others() {
  REHEARSE_CHECK(current_fiber() == nullptr && !dispatcher_due_, dispatcher_due_);
  // The dispatcher frees ended fibers, then asks for the next contexts: foreign fibers, and finally the caller.
  auto* const main = boost::fibers::context::active();
  foreign_.push_back(main);
  auto* const running = std::exchange(switcher, nullptr);
  dispatcher_due_ = dispatcher_ != nullptr;
  main->suspend();
  switcher = running;
}

}  // namespace rehearse::exec
