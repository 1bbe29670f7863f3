// SPDX-License-Identifier: BSD-3-Clause
// A library that is there by its name, and of which nothing is called.
extern "C" {
extern const int rehearse_stand_in;
const int rehearse_stand_in = 1;
}
