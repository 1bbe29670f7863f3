// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <rehearse_internal/job/launched.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::real {

// The address of the store through which the processes of a job find each other.
struct StoreAddress {
  std::string host;
  std::uint16_t port = 0;
  bool is_served = false;  // torchrun's agent serves the store; otherwise rank 0 does
  std::string prefix;      // for all keys; a new one each time torchrun restarts the job
};

// Reads MASTER_ADDR and MASTER_PORT, and torchrun's TORCHELASTIC_USE_AGENT_STORE and TORCHELASTIC_RESTART_COUNT. Throws
// RunnerUnavailable, naming the variable, if MASTER_ADDR is missing or MASTER_PORT is no port number.
StoreAddress store_address(const LaunchedProcess& process);

// The store of all processes of the job. The first call connects, later calls return the same store. Unless torchrun's
// agent serves the store, rank 0's process does, as long as it lives. Blocks until all processes are there: at most for
// `timeout` until this process is connected, and then at most for `timeout` until the others are there. Throws
// RunnerUnavailable, which names the missing ranks or says why there is no connection.
//
// Unless the program has a handler for SIGPIPE, the process ignores that signal from the first call on.
c10::intrusive_ptr<c10d::Store> join_store(const LaunchedProcess& process, std::chrono::milliseconds timeout);

}  // namespace rehearse::real
