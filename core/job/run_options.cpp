// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/run_options.h>

namespace rehearse {

comm::EventLogOptions events_of(const RunRequest& request) {
  comm::EventLogOptions events;
  events.ranks = request.ranks;
  // Comparing call sites needs all events from the first call on.
  events.keep_all = request.keep_all_events || request.call_sites;
  return events;
}

comm::CommunicatorOptions communication_of(const RunRequest& request) {
  comm::CommunicatorOptions communication;
  communication.timeout = request.timeout;
  communication.coalesced_as_one = request.coalesced_as_one;
  communication.call_sites = request.call_sites;
  return communication;
}

}  // namespace rehearse
