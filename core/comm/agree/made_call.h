// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse_internal/comm/operation.h>

#include "comm/call/fingerprint.h"

// This room decides whether the calls of a group's ranks match, and writes the texts for mismatches and for calls that
// wait. The matcher of a simulation and the coordinator of a job of processes both use it, so that they reach the same
// verdict with the same text. It depends on neither fibers nor time nor processes.
namespace rehearse::comm {

// One rank's collective, send or receive. The objects that it points to must outlive it.
struct MadeCall {
  int rank = -1;  // in the group
  std::uint64_t sequence = 0;
  const Operation* operation = nullptr;
  std::uint64_t fingerprint = 0;  // agreement_hash()
};

// Whether two calls of one collective agree in everything on which all ranks must agree.
inline bool agree(const MadeCall& one, const MadeCall& other) noexcept {
  return one.fingerprint == other.fingerprint && same_payload(*one.operation, *other.operation);
}

}  // namespace rehearse::comm
