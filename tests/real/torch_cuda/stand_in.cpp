// SPDX-License-Identifier: BSD-3-Clause
// A library that exists only by its name; nothing calls it.
extern "C" {
extern const int rehearse_stand_in;
const int rehearse_stand_in = 1;
}
