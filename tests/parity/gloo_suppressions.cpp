// SPDX-License-Identifier: BSD-3-Clause
// Options that AddressSanitizer reads from a program, here only for the programs of this folder.

// If ranks disagree on splits, Gloo's threads send memory beyond an input. These tests make such calls to see what Gloo
// refuses.
extern "C" const char* __asan_default_suppressions();
extern "C" const char* __asan_default_suppressions() { return "interceptor_via_fun:gloo::transport::tcp::Pair\n"; }
