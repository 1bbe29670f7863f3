// SPDX-License-Identifier: BSD-3-Clause
#include "creation_observer.h"

#include "comm/agree/wording.h"

namespace rehearse::comm {

std::string CreationObserver::describe() const { return disagreeing(call()); }

std::string CreationObserver::call() const { return new_group_title(index_); }

}  // namespace rehearse::comm
