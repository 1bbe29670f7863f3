// SPDX-License-Identifier: BSD-3-Clause
// What AddressSanitizer asks a program for, here for the programs of this folder alone.

// Gloo's threads send what is beyond an input whose splits the ranks do not agree on, and these tests ask it what it
// refuses.
extern "C" const char* __asan_default_suppressions();
extern "C" const char* __asan_default_suppressions() { return "interceptor_via_fun:gloo::transport::tcp::Pair\n"; }
