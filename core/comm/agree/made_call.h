// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse_internal/comm/operation.h>

#include "comm/call/fingerprint.h"

// Whether the calls of a group's ranks fit each other, what is said where they do not, and of those that still wait.
// The matcher of a simulation and the coordinator of a job of processes both go by this room, so that they come to the
// same verdict in the same words. It knows neither fibers nor time nor processes.
namespace rehearse::comm {

// One rank's collective, send or receive. What it points to outlives it.
struct MadeCall {
  int rank = -1;  // within the group
  std::uint64_t sequence = 0;
  const Operation* operation = nullptr;
  std::uint64_t fingerprint = 0;  // agreement_hash()
};

// Are they calls of one collective?
inline bool agree(const MadeCall& one, const MadeCall& other) noexcept {
  return one.fingerprint == other.fingerprint && same_payload(*one.operation, *other.operation);
}

}  // namespace rehearse::comm
