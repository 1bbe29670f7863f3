// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/comm/event_log.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/comm/communicator_options.h>

// Derives the options of event logs and communicators from a run's request, in every mode.
namespace rehearse {

comm::EventLogOptions events_of(const RunRequest& request);
comm::CommunicatorOptions communication_of(const RunRequest& request);

}  // namespace rehearse
