// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse_internal/comm/described_backend.h>

// Random programs of ranks that call c10d. About three of four programs get up to three mistakes.
namespace rehearse::real {

struct RandomCall {
  enum class Kind {
    allreduce,
    broadcast,
    allgather,
    reduce_scatter,
    alltoall,
    barrier,
    send,
    recv,
    recv_any,
    new_group,
  };
  Kind kind = Kind::barrier;
  int group = 0;  // 0: the world; n: the group that the rank's n-th new_group() has made
  std::int64_t size = 1;
  bool is_double = false;
  int root = 0;  // of a broadcast; in a reduction, the op: 0 sum, 1 max, 2 min
  int peer = 0;
  int tag = 0;
  std::vector<std::int64_t> sent, expected;  // of an all-to-all
  std::string payload;                       // the tensor's name; empty: none
  std::vector<int> members;                  // of a new group
  std::string name;
  std::int64_t pause = 1;  // before the call, in microseconds
  bool waits = false;      // for this call and all earlier ones
};

struct RandomProgram {
  int ranks = 2;
  std::vector<std::vector<RandomCall>> calls;  // by rank
};

// Equal seeds give equal programs.
RandomProgram random_program(std::uint64_t seed);

// Makes the call on the backend's group. `call` must not be a new_group().
c10::intrusive_ptr<c10d::Work> make(const RandomCall& call, comm::DescribedBackend& backend);

}  // namespace rehearse::real
