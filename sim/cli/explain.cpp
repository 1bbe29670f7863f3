// SPDX-License-Identifier: BSD-3-Clause
#include "cli/commands.h"
#include "cli/read_report.h"

namespace rehearse::cli {

int explain(const Arguments& arguments, Console& console) { return console.conclude(read_report(arguments)); }

}  // namespace rehearse::cli
