// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace rehearse::real {

// A thread that runs the given work, in order. Thread safe.
class WorkThread {
 public:
  WorkThread();

  // Does not block.
  void give(std::function<void()> work);

  // Ends the thread after it has done the work that it was given before. The destructor does the same.
  void close();

 private:
  void serve(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> waiting_;
  std::jthread thread_;  // last member, so that its destructor runs first
};

}  // namespace rehearse::real
