// SPDX-License-Identifier: BSD-3-Clause
// The source of stand-ins for NVIDIA libraries that libtorch_cuda links. With them, libtorch_cuda loads on a machine
// without those libraries. The build makes a stand-in for each library's name. No code calls a function in them.
extern "C" {
extern const int rehearse_stand_in;
const int rehearse_stand_in = 1;
}
