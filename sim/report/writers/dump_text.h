// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <rehearse/job/report.h>

// The additional parts of a report that explains dumps, for people. Lines are wrapped at `width` bytes.
namespace rehearse::sim {

// The stacks of ranks; only the user's own frames if a stack has any.
std::string stacks_text(const DumpFacts& dumps, std::size_t width);

// For example "rehearse 1.2.3 ranks=4: 57 calls in the dumps of ranks 0-2, format 2.10, carried by nccl 2.28.9".
std::string dumps_banner(const Report& report, std::size_t width);

}  // namespace rehearse::sim
