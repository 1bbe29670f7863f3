// SPDX-License-Identifier: BSD-3-Clause
// A user's library that the test opens by dlopen().
extern "C" void call_back(void (*function)()) {
  function();
  asm volatile("" ::: "memory");
}
