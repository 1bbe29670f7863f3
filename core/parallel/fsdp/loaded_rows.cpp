// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/loaded_rows.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty_like.h>

namespace rehearse::parallel {
namespace {

at::Tensor with_rows(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  return plain.dim() == 0 ? plain.unsqueeze(0) : plain;
}

}  // namespace

LoadedRows::LoadedRows(at::Tensor own, std::int64_t first_row, bool must_agree)
    : must_agree_(must_agree),
      own_(with_rows(own)),
      loaded_(at::empty_like(own_)),
      first_row_(first_row),
      has_(static_cast<std::size_t>(own_.size(0)), false) {}

void LoadedRows::take(const SavedRows& saved) {
  const at::Tensor rows = with_rows(saved.rows);
  const std::int64_t all = saved.sizes.empty() ? 1 : saved.sizes[0];
  const std::int64_t end = saved.first_row + rows.size(0);
  TORCH_CHECK_VALUE(saved.first_row >= 0 && end <= all && rows.sizes().slice(1) == own_.sizes().slice(1), "FSDP: rows ",
                    saved.first_row, " to ", end, " of \"", saved.name, "\" have sizes ", rows.sizes(),
                    "; the whole has ", at::IntArrayRef(saved.sizes));
  const std::int64_t from = std::max(saved.first_row, first_row_);
  const std::int64_t count = std::min(end, first_row_ + own_.size(0)) - from;
  if (count <= 0) return;
  const at::Tensor target = loaded_.narrow(0, from - first_row_, count);
  const at::Tensor values = rows.narrow(0, from - saved.first_row, count).to(target.options());
  for (std::int64_t row = 0; must_agree_ && row < count; ++row) {
    if (!has_[static_cast<std::size_t>(from - first_row_ + row)]) continue;
    TORCH_CHECK_VALUE(values[row].allclose(target[row], 0, 0, /*equal_nan=*/true),
                      "FSDP: load_sharded_state_dict() has row ", from + row, " of \"", saved.name,
                      "\" twice, with other values");
  }
  target.copy_(values);
  std::fill_n(has_.begin() + (from - first_row_), count, true);
}

void LoadedRows::require_complete(const std::string& name) const {
  const auto missing = std::find(has_.begin(), has_.end(), false);
  TORCH_CHECK_VALUE(missing == has_.end(), "FSDP: load_sharded_state_dict() lacks row ",
                    first_row_ + (missing - has_.begin()), " of \"", name,
                    "\". Give it what every rank of the group has saved");
}

void LoadedRows::put() { own_.copy_(loaded_); }

}  // namespace rehearse::parallel
