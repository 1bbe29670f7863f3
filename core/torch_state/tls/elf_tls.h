// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::torch_state {

// One thread-local variable of a loaded library, at `offset` in the library's thread-local block.
struct TlsSymbol {
  std::string name;  // as in the symbol table (mangled); cut at kTlsNameMax
  std::size_t offset = 0;
  std::size_t bytes = 0;
  bool is_inline = false;  // a header defines it: the linker keeps one copy of all
};

// Longer names exist (templates of fbgemm), but no lookup uses their full names.
inline constexpr std::size_t kTlsNameMax = 255;

// The thread-local block of one loaded library, as described in its file.
struct TlsModule {
  std::string path;
  std::size_t id = 0;              // identifies the library to the dynamic linker
  std::string build_id;            // hexadecimal; empty if the file has none
  std::size_t block_bytes = 0;     // size of each thread's block
  std::vector<std::byte> initial;  // initial contents of a new thread's block: block_bytes bytes
  std::vector<TlsSymbol> symbols;  // ordered by offset
};

bool is_loaded(std::string_view soname);

// The thread-local variables of the library in this file, ordered by offset. The library need not be loaded. Throws
// TorchStateError if the file is not readable or has no `.symtab`.
std::vector<TlsSymbol> read_tls_symbols(const std::string& path);

// Reads the symbol table of the loaded library whose file name is `soname`. Takes a few milliseconds for a file of half
// a million symbols. Throws TorchStateError if the library is not loaded, is not readable, or has no `.symtab`.
TlsModule read_tls_module(std::string_view soname);

// The same for the executable. If the executable has been stripped, only the variables that it exports are in the list.
TlsModule read_tls_of_executable();

// The calling thread's block of that library; allocates it if necessary.
std::byte* tls_block_of_this_thread(const TlsModule& module) noexcept;

}  // namespace rehearse::torch_state
