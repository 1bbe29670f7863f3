// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Registers kernels for the functional collectives (_c10d_functional and _c10d_functional_autograd) at the key Fake.
// They return fakes of the results' sizes and send nothing. The registration lasts for the life of the process; later
// calls do nothing.
void register_collectives_of_fakes();

}  // namespace rehearse::capture
