// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dumps/dump.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// Do the bytes begin as a dump does: as a pickle, or as JSON?
bool may_be_dump(std::string_view beginning);

// Are the bytes a pickle, or JSON that is no report?
bool is_dump(std::string_view bytes);

// Reads the dumps that `paths` name: files, and folders whose files are dumps (others there are left out). A file's
// rank is the number with which its name ends, before an extension. Throws DumpError where one cannot be read, where
// two are of one rank, and where a folder has those of several jobs.
std::vector<Dump> read_dumps(const std::vector<std::string>& paths, Stacks& stacks);

}  // namespace rehearse::sim
