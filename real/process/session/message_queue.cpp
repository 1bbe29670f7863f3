// SPDX-License-Identifier: BSD-3-Clause
#include "message_queue.h"

#include <c10/util/Exception.h>

namespace rehearse::real {
namespace {

// Beats come all the time: a wait that is longer is in a store that does not answer. Each end of one is a warning on
// stderr, so they are few.
constexpr std::chrono::hours kLongest{1};

}  // namespace

Bytes MessageQueue::receive(const std::string& reader) {
  store_->setTimeout(kLongest);
  for (;;) {
    try {
      return store_->queuePop(reader, /*block=*/true);
    } catch (const c10::DistStoreError&) {
      // The time is over; a store that is gone is a DistNetworkError.
    }
  }
}

}  // namespace rehearse::real
