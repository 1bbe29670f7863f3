// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace rehearse::comm {

// What calls of one kind have in common (op, sizes, dtypes, label, timeout): stored once, named by number in events.
struct Signature {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  std::string name;         // "allreduce", "monitored_barrier", ...
  std::string fingerprint;  // as in Mismatch
  std::string label;        // what the payload is called; empty: nothing
  std::vector<std::vector<std::int64_t>> input_sizes, output_sizes;
  std::vector<at::ScalarType> input_dtypes, output_dtypes;
  std::chrono::milliseconds timeout{0};
};

}  // namespace rehearse::comm
