// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Makes the functional collectives (_c10d_functional and _c10d_functional_autograd) give fakes of their results' sizes
// at the key Fake: nothing is sent. FakeMode does it. For the life of the process; later calls do nothing.
void register_collectives_of_fakes();

}  // namespace rehearse::capture
