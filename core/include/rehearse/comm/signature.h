// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace rehearse::comm {

// The facts that repeated calls share (op, sizes, dtypes, label, timeout). The log stores them once; events refer to
// them by number.
struct Signature {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  std::string name;         // "allreduce", "monitored_barrier", ...
  std::string fingerprint;  // the part that all ranks must agree on, as text
  std::string label;        // names the payload; empty: no label
  std::vector<std::vector<std::int64_t>> input_sizes, output_sizes;
  std::vector<at::ScalarType> input_dtypes, output_dtypes;
  std::chrono::milliseconds timeout{0};
};

}  // namespace rehearse::comm
