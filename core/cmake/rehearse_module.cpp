// SPDX-License-Identifier: BSD-3-Clause
// Linked first into each program that is a shared object: see rehearse_add_program(... MODULE).
extern "C" {

extern void* __dso_handle;  // identifies this shared object; the compiler defines it

void rehearse_module_loaded(const void* handle);  // in the executable

[[gnu::visibility("default")]] const void* rehearse_module_handle() { return &__dso_handle; }
}

namespace {

// Runs before every other constructor, while variables still have the values of a new process.
[[gnu::constructor(101)]] void tell() { rehearse_module_loaded(&__dso_handle); }

}  // namespace
