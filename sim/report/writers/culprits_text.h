// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <rehearse/job/report.h>

namespace rehearse::sim {

// Where to look first: "culprit: rank 3 at train.cpp:41 in step". If the report knows where the trouble began, the
// line says that instead. Otherwise the text is empty if the headline has the place already, if no place is known, or
// if most ranks are culprits. A report on dumps always names its culprits. Lines are wrapped at `width` bytes.
std::string culprits_text(const Report& report, std::size_t width);

}  // namespace rehearse::sim
