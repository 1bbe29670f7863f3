// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "dumps/dump.h"
#include "dumps/dump_field.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// The versions of the recorder's format that are known. By its contract a minor version only adds fields.
inline constexpr int kDumpMajor = 2;
inline constexpr int kDumpMinorMost = 11;

// The dump of one rank. Throws DumpError, whose text begins with the field; so do those below.
Dump read_dump(const Field& whole, std::string file, int rank, Stacks& stacks);

// Is it flight_recorder.json of a rehearsal, which has all ranks in one file?
bool is_of_all_ranks(const Field& whole);
std::vector<Dump> read_dumps_of_all_ranks(const Field& whole, const std::string& file, Stacks& stacks);

// One entry. `format`: the minor version.
DumpedCall read_call(const Field& entry, Stacks& stacks);

// The minor version of "2.10"; -1: it is of another major version, or none at all.
int minor_version(const std::string& version);

}  // namespace rehearse::sim
