// SPDX-License-Identifier: BSD-3-Clause
// Stands in for an NVIDIA library that libtorch_cuda links, so that libtorch_cuda loads on a machine without it. The
// build makes one such library for each name. Nothing calls them.
extern "C" {
extern const int rehearse_stand_in;
const int rehearse_stand_in = 1;
}
