// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <rehearse_internal/job/launched.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::real {

// Where the processes of a job meet.
struct MeetingPlace {
  std::string host;
  std::uint16_t port = 0;
  bool is_served = false;  // torchrun's agent serves the store; otherwise rank 0 does
  std::string prefix;      // of all keys: one for each time that torchrun starts the job again
};

// From MASTER_ADDR and MASTER_PORT; TORCHELASTIC_USE_AGENT_STORE and TORCHELASTIC_RESTART_COUNT of torchrun's. Throws
// RunnerUnavailable, naming the variable, where one is missing or makes no sense.
MeetingPlace meeting_place(const LaunchedProcess& process);

// The store of all processes of the job. The first call connects, later ones give the same; rank 0 serves it as long as
// its process lives. Blocks until all processes are there, `timeout` at most: then throws RunnerUnavailable with the
// ranks that are missing, or why there is no connection.
c10::intrusive_ptr<c10d::Store> meet(const LaunchedProcess& process, std::chrono::milliseconds timeout);

}  // namespace rehearse::real
