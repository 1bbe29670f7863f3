// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// Makes each of the first `devices` GPUs do a little of what ranks will do, including a backward pass, before any rank
// exists. CUDA, cuBLAS and autograd create contexts, handles and threads when a process first needs them. Thus this
// happens here, and not in a rank in the middle of its work. Blocks for about a second for each device.
void warm_up_devices(int devices);

}  // namespace rehearse::real
