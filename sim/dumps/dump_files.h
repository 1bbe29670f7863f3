// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dumps/dump.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// True if the bytes begin as a dump does: as a pickle or as JSON.
bool may_be_dump(std::string_view beginning);

// True if the bytes are a pickle, or JSON with the fields of a dump.
bool is_dump(std::string_view bytes);

// Reads the dumps that `paths` name: files, and folders with dumps (it ignores other files there). The number at the
// end of a file's name, before an extension, is the rank of its dump; a file may also hold the dumps of all ranks.
// Throws DumpError if a file is no dump, if two dumps have the same rank, or if a folder holds no dumps or those of
// several jobs. If a file cannot be read, throws DumpError or, for a file in a folder, InputError.
std::vector<Dump> read_dumps(const std::vector<std::string>& paths, Stacks& stacks);

}  // namespace rehearse::sim
