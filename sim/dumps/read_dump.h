// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "dumps/dump.h"
#include "dumps/dump_field.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// The known versions of the recorder's format. By its contract a minor version only adds fields.
inline constexpr int kDumpMajor = 2;
inline constexpr int kDumpMinorMost = 11;

// Reads the dump of one rank. All readers here throw DumpError, whose text begins with the field.
Dump read_dump(const Field& whole, std::string file, int rank, Stacks& stacks);

// True for a flight_recorder.json that Rehearse wrote, which holds all ranks in one file.
bool is_of_all_ranks(const Field& whole);
std::vector<Dump> read_dumps_of_all_ranks(const Field& whole, const std::string& file, Stacks& stacks);

DumpedCall read_call(const Field& entry, Stacks& stacks);

// The minor version of "2.10"; -1: another major version, or no version.
int minor_version(const std::string& version);

}  // namespace rehearse::sim
