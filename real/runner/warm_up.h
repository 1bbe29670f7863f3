// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// Has each of the first `devices` GPUs do a little of what ranks will do, a backward pass among it, before any rank is
// there. What CUDA, cuBLAS and autograd make once for a process (contexts, handles, threads) is then made by real
// threads, and not in the middle of a rank. Blocks for a second or so a device.
void warm_up_devices(int devices);

}  // namespace rehearse::real
