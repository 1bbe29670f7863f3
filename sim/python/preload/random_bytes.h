// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::python {

// From now on, the bytes that `rank` gets from getrandom(), and so from os.urandom(), follow from `seed` and the rank.
void seed_random_bytes(int rank, std::uint64_t seed);

}  // namespace rehearse::python
