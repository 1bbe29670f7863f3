// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

namespace rehearse::exec {

class Outside;
class RankExecutor;

// The way into a world for threads that run none of its ranks: one that waits for a device in a rank's place, a
// library's. Copies lead to the same world, and may outlive it.
//
// Threads: post() and Errand from any. Blocking: none of it, but for a mutex held for an instant.
class Inbox {
 public:
  // On the executor's thread. Throws std::logic_error where the executor's clock does not pass by itself: a simulated
  // run would depend on when a thread comes.
  explicit Inbox(RankExecutor& executor);

  // Runs `work` soon as RankExecutor::post() does, after what was posted before. The executor sees it when no rank can
  // run, at once if it sleeps; else at its next look (ExecutorOptions::switches_between_looks). False: the world is
  // over, and the work is not kept. For a rank that has ended it is dropped, on the executor's thread.
  bool post(int rank, std::function<void()> work) const;

  // While one lives, a thread is on its way back: that no rank can go on is then neither a deadlock nor a livelock.
  // Let it go after post().
  class Errand {
   public:
    explicit Errand(const Inbox& inbox);
    Errand(const Errand&) = delete;
    Errand& operator=(const Errand&) = delete;
    Errand(Errand&&) noexcept = default;
    Errand& operator=(Errand&&) = delete;
    ~Errand();

   private:
    std::shared_ptr<Outside> outside_;  // null: moved from
  };

 private:
  std::shared_ptr<Outside> outside_;
};

}  // namespace rehearse::exec
