// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::real {

// Makes each of the first `devices` GPUs do a little of what ranks will do, including a backward pass, before any rank
// exists. Thus real threads, and not ranks in the middle of their work, make what CUDA, cuBLAS and autograd make once
// for a process (contexts, handles, threads). Blocks for about a second for each device.
void warm_up_devices(int devices);

}  // namespace rehearse::real
