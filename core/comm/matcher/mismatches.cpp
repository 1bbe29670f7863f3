// SPDX-License-Identifier: BSD-3-Clause
#include "mismatches.h"

#include <rehearse/comm/errors.h>

namespace rehearse::comm {

void Mismatches::fail(const Mismatch& mismatch) {
  const auto text = to_string(mismatch);
  report(mismatch);
  executor_.stop(text);
  throw MismatchError(text, mismatch.group, mismatch.sequence, {mismatch.first.rank, mismatch.second.rank});
}

}  // namespace rehearse::comm
