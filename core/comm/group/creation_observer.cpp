// SPDX-License-Identifier: BSD-3-Clause
#include "creation_observer.h"

#include <fmt/format.h>

#include "comm/agree/wording.h"

namespace rehearse::comm {

std::string CreationObserver::describe() const { return disagreeing(call()); }

std::string CreationObserver::call() const { return fmt::format("new_group #{}", index_); }

}  // namespace rehearse::comm
