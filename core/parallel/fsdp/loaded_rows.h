// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/parallel/shard_state.h>

namespace rehearse::parallel {

// Collects the rows that this rank needs of one tensor, out of the rows that all ranks have saved. put() then copies
// them into the tensor.
class LoadedRows {
 public:
  // `own`: this rank's rows, which begin at row `first_row` of the whole. A tensor without dimensions counts as one
  // row. `must_agree`: if several ranks have saved a row, their values must be equal. Otherwise the last value counts,
  // as for buffers, which each rank has saved as a whole.
  LoadedRows(at::Tensor own, std::int64_t first_row, bool must_agree);

  // Takes the rows that this rank needs. Throws c10::ValueError for rows that the whole does not have, and for values
  // that must agree and do not.
  void take(const SavedRows& saved);
  // Throws c10::ValueError, which names the first row that no rank has saved.
  void require_complete(const std::string& name) const;
  void put();

 private:
  const bool must_agree_;
  at::Tensor own_, loaded_;  // [rows, ...]
  std::int64_t first_row_;
  std::vector<bool> has_;  // by row
};

}  // namespace rehearse::parallel
