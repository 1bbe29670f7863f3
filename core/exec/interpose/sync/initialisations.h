// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <unordered_map>

#include "exec/interpose/wait_table.h"

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// Initialisations in progress in fibers of one world, by the address of the guard of a function-local static or of the
// pthread_once_t. The guard or pthread_once_t itself is also marked as in progress, as libstdc++ or libc would mark it,
// so that real threads wait, too.
class Initialisations {
 public:
  void begin(const void* object, const Fiber& by) { running_.insert_or_assign(object, &by); }

  // The initialisation has finished or failed: the waiting fibers check the object again.
  void end(const void* object) {
    running_.erase(object);
    waiters_.notify_all(object);
  }

  // The fiber that initialises the object; null if no fiber of this world does.
  const Fiber* who(const void* object) const {
    const auto found = running_.find(object);
    return found != running_.end() ? found->second : nullptr;
  }

  // Waits until the initialisation ends. Throws RankAborted if the world ends first.
  void wait(const void* object, Fiber& fiber, const Observer& observer);

  const std::unordered_map<const void*, const Fiber*>& running() const noexcept { return running_; }

 private:
  std::unordered_map<const void*, const Fiber*> running_;
  WaitTable waiters_;
};

// Describes a wait for an initialisation: "the end of the initialisation of a static variable that rank 3 has begun".
class InitialisationObserver final : public Observer {
 public:
  InitialisationObserver(const char* what, const Fiber& by) : what_(what), by_(by) {}

 private:
  Wait describe() const override;

  const char* what_;
  const Fiber& by_;
};

// Resets the guard of an initialisation whose fiber will never finish, as if it had failed.
void give_up_guard(const void* guard);
void give_up_once(const void* once);

}  // namespace rehearse::exec::interpose
