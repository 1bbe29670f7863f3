// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/comm/event_log.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/comm/communicator_options.h>

// What a run's request means for its transport, event log and communicators, in every mode.
namespace rehearse {

// True if each rank must be a process of its own. False for Transport::automatic.
bool is_of_processes(Transport transport);
// False for Transport::automatic.
bool is_on_gpus(Transport transport);

comm::EventLogOptions events_of(const RunRequest& request);
comm::CommunicatorOptions communication_of(const RunRequest& request);

}  // namespace rehearse
