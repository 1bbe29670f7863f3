// SPDX-License-Identifier: BSD-3-Clause
#include "message_queue.h"

#include <c10/util/Exception.h>

namespace rehearse::real {
namespace {

// The limit of one wait. Heartbeats come all the time, so if a wait reaches the limit, the store does not answer. The
// limit is long because each wait that reaches it prints a warning on stderr.
constexpr std::chrono::hours kLongest{1};

}  // namespace

std::string MessageQueue::receive(const std::string& reader) {
  store_->setTimeout(kLongest);
  for (;;) {
    try {
      const auto bytes = store_->queuePop(reader, /*block=*/true);
      return {bytes.begin(), bytes.end()};
    } catch (const c10::DistStoreError&) {
      // The time is over, so wait again. A store that is gone throws DistNetworkError instead.
    }
  }
}

}  // namespace rehearse::real
