// SPDX-License-Identifier: BSD-3-Clause
#include "work_thread.h"

#include <utility>

namespace rehearse::real {

WorkThread::WorkThread() : thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void WorkThread::give(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkThread::close() { thread_ = {}; }

void WorkThread::serve(const std::stop_token& stop) {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace rehearse::real
