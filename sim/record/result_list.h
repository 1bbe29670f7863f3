// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/job/run_record.h>

namespace rehearse::sim {

// A rank's result (RankContext::result()) as a file keeps it.
struct ListedResult {
  int rank = -1;
  std::string name;
  std::uint64_t index = 0;  // counts the results of this rank and name, from 0
  std::string dtype;        // "float32"
  std::vector<std::int64_t> sizes;
  std::uint64_t hash = 0;  // FNV-1a of all its bytes, contiguous and in this machine's byte order
  std::string bytes{};     // all of them; empty if the tensor is too large for the file
  // The least and the greatest of the tensor's numbers, and the norm of all of them, as doubles. A complex number
  // counts as two: its real and its imaginary part. All three are NaN if the tensor holds a NaN.
  double least = 0, most = 0, norm = 0;

  std::int64_t elements() const noexcept;
  bool is_whole() const noexcept { return !bytes.empty() || elements() == 0; }
};

// A file keeps the bytes of a tensor if they are at most `tensor_bytes`, and at most `file_bytes` together with the
// bytes that the file keeps already. Of other tensors the file keeps no bytes.
struct ResultLimits {
  std::size_t tensor_bytes = std::size_t{1} << 20;
  std::size_t file_bytes = std::size_t{32} << 20;
};

std::vector<ListedResult> listed_results(const std::vector<RankResult>& results, const ResultLimits& limits = {});

// Writes results.json: {"rehearse_results": 1, "results": [...]}, one result on a line, bytes in hexadecimal. Does not
// throw by itself; check the state of `out` afterwards.
void write_results(std::ostream& out, const std::vector<ListedResult>& results);

// Throws ReportFormatError.
std::vector<ListedResult> results_from_json(std::string_view text);

}  // namespace rehearse::sim
