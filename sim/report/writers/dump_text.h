// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <rehearse/job/report.h>

// What a report that explains dumps says beside the rest, for people. Lines are wrapped at `width` bytes.
namespace rehearse::sim {

// "culprit: rank 3".
std::string culprits_text(const DumpFacts& dumps, std::size_t width);

// Where ranks stand, by the user's own frames where the stack has any.
std::string stacks_text(const DumpFacts& dumps, std::size_t width);

// "rehearse 1.2.3 ranks=4: 57 calls in the dumps of ranks 0-2, format 2.10, carried by nccl 2.28.9".
std::string dumps_banner(const Report& report, std::size_t width);

}  // namespace rehearse::sim
