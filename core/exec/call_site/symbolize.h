// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::exec {

struct ResolvedFrame {
  Frame frame;
  bool users_own = false;  // neither of LibTorch, the C++ library, Boost nor Rehearse
  bool unknown = false;    // of a file that may be the user's, and that does not say what is there
};

// The functions at a return address, innermost first: more than one where the compiler inlined. Never empty;
// the function is "??" when nothing is known. Looked up once for each address in the life of a process;
// thread safe.
//
// Line tables are read only from modules that may hold the user's code: LibTorch carries none, and its symbol
// table alone would cost a second.
const std::vector<ResolvedFrame>& resolve(void* return_address);

// Whether the address is in a shared library that is never the user's own: LibTorch, Boost, the C++ and C
// libraries.
bool in_foreign_library(void* address);

// A function or type as C++ writes it; the name itself when it is not mangled.
std::string demangled(const std::string& name);

// "main::step" for "void main::step<float>(at::Tensor const&) [clone .isra.0]": what a reader recognises in a
// report.
std::string short_name(std::string_view function);

// What std::function or std::thread calls, from the (demangled) name of the function of theirs into which it may have
// been inlined: "main::{lambda()#1}" for "std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke(...)". Empty
// for others, and where that is no function of its own (a pointer).
std::string_view wrapped_callable(std::string_view function);

// The outermost name of a function, from its mangled name: "torch" for _ZN5torch3nn6Linear7forwardE..., also
// for the functions local to it; "std" for all abbreviations of the C++ library; empty for C.
std::string_view outermost_name(std::string_view mangled);

}  // namespace rehearse::exec
