// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse_test {

// Recorded results of PyTorch's DistributedDataParallel (tests/data/ddp/record_ddp.py makes them): a rank's parameters
// and buffers after a step. Values are flat, with their exact bits.
struct RecordedState {
  int ranks = 0;
  int rank = 0;
  int step = 0;                             // counted from 0; -1: at the end of join()
  std::map<std::string, std::string> bits;  // of each tensor by name, as bits_of() returns them
};

// Everything recorded for a case. Throws std::runtime_error for an unknown case.
std::vector<RecordedState> recorded_states(const std::string& name);

// The data of c10d's logger on one rank, with numbers as text. Throws std::runtime_error if it was not recorded.
std::map<std::string, std::string> recorded_logging_data(const std::string& name, int ranks, int rank);

// The text of the error that `rank` got in a world of two ranks. Throws std::runtime_error if it was not recorded.
std::string recorded_error(const std::string& name, int rank);

// bits_of() writes the bits of each element as big-endian hexadecimal digits, one element after the other. tensor_of()
// reads such digits.
std::string bits_of(const at::Tensor& tensor);
at::Tensor tensor_of(const std::string& bits, at::ScalarType dtype);

}  // namespace rehearse_test
