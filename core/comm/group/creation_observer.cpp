// SPDX-License-Identifier: BSD-3-Clause
#include "creation_observer.h"

#include "comm/agree/wording.h"

namespace rehearse::comm {

exec::Wait CreationObserver::describe() const {
  const auto call = new_group_title(index_);
  return {disagreeing(call), call, calls_.vote().disagreeing_ranks(rank_), false, exec::Wait::Kind::call};
}

}  // namespace rehearse::comm
