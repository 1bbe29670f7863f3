// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/parallel/shard_state.h>

namespace rehearse::parallel {

// The rows that a rank takes of what others have saved of one tensor, before any of them is put in its place.
class LoadedRows {
 public:
  // `own`: this rank's rows, from row `first_row` of the whole on. A tensor without dimensions is one row.
  // `must_agree`: what several have saved of a row is the same; else the last one counts, as for buffers, which each
  // rank has whole.
  LoadedRows(at::Tensor own, std::int64_t first_row, bool must_agree);

  // Takes what it needs of `saved`. Throws c10::ValueError for rows that the whole does not have, and for a row that
  // others have saved otherwise.
  void take(const SavedRows& saved);
  // Throws c10::ValueError that names the first row which nobody has saved.
  void require_complete(const std::string& name) const;
  void put();

 private:
  const bool must_agree_;
  at::Tensor own_, loaded_;  // [rows, ...]
  std::int64_t first_row_;
  std::vector<bool> has_;  // by row
};

}  // namespace rehearse::parallel
