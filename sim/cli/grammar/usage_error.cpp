// SPDX-License-Identifier: BSD-3-Clause
#include "cli/grammar/usage_error.h"

#include <fmt/format.h>

#include "cli/grammar/help.h"

namespace rehearse::cli {

void refuse(const std::string& name, const CommandSpec* command, std::string_view what) {
  const auto where = command == nullptr ? name : fmt::format("{} {}", name, command->name);
  throw UsageError(fmt::format("{}: {}\n{}   (see {} --help)", where, what, usage(name, command), where));
}

}  // namespace rehearse::cli
