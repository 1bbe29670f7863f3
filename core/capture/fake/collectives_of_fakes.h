// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Registers kernels for the functional collectives (_c10d_functional and _c10d_functional_autograd) at the key Fake,
// except for those with an argument `out`. The kernels send nothing. In-place forms and wait_tensor() return their
// argument; the others return fakes of the results' sizes. The registration lasts for the life of the process; later
// calls do nothing.
void register_collectives_of_fakes();

}  // namespace rehearse::capture
