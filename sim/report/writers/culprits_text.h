// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <rehearse/job/report.h>

namespace rehearse::sim {

// Where to look first: "culprit: rank 3 at train.cpp:41 in step". Empty if the headline has the place already, if no
// place is known, or if most ranks are culprits; dumps name their culprits in any case. Lines are wrapped at `width`
// bytes.
std::string culprits_text(const Report& report, std::size_t width);

}  // namespace rehearse::sim
