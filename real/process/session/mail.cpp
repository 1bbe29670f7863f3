// SPDX-License-Identifier: BSD-3-Clause
#include "mail.h"

#include <c10/util/Exception.h>

namespace rehearse::real {

std::optional<Bytes> Mail::receive(const std::string& reader, std::chrono::milliseconds within) {
  if (store_->queueLen(reader) == 0) {
    store_->setTimeout(within);
    try {
      return store_->queuePop(reader, /*block=*/true);
    } catch (const c10::DistStoreError&) {
      return std::nullopt;  // its time is over; a store that is gone is a DistNetworkError
    }
  }
  return store_->queuePop(reader, /*block=*/false);
}

}  // namespace rehearse::real
