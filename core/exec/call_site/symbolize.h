// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

struct ResolvedFrame {
  Frame frame;
  bool users_own = false;  // not part of Rehearse or of a library that it knows; see CallSite::user_frames()
  bool unknown = false;    // in a file that may be the user's, but has no information about the address
};

// The functions at a return address, innermost first: more than one if the compiler inlined some. Never empty; an
// unknown function is "??". Each address is looked up once in the life of a process. Thread safe.
//
// Reads line tables only of modules that may contain the user's code. LibTorch has no line tables, and reading its
// symbol table would take a second.
const std::vector<ResolvedFrame>& resolve(void* return_address);

// Whether the address is in a shared library that is never the user's: LibTorch, CUDA, Boost, libgomp, the sanitizers,
// the C++ and C libraries.
bool in_foreign_library(void* address);

// A function or type in C++ notation; returns the name itself if it is not mangled.
std::string demangled(const std::string& name);

// "main::step" for "void main::step<float>(at::Tensor const&) [clone .isra.0]": the part that a reader of reports
// recognises.
std::string short_name(std::string_view function);

// The callable inside std::function or std::thread, taken from the demangled name of the library function into which it
// may have been inlined: "main::{lambda()#1}" for "std::_Function_handler<void (),
// main::{lambda()#1}>::_M_invoke(...)". Empty for other functions, and if the callable is a pointer to a function,
// whose type does not name the function.
std::string_view wrapped_callable(std::string_view function);

// The outermost name in a function's mangled name: "torch" for _ZN5torch3nn6Linear7forwardE..., also for functions
// local to it; "std" for all abbreviations of the C++ library; empty for C functions.
std::string_view outermost_name(std::string_view mangled);

}  // namespace rehearse::exec
