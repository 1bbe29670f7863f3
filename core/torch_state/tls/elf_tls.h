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
};

// Longer names exist (templates of fbgemm), but none of them is looked up by its full name.
inline constexpr std::size_t kTlsNameMax = 255;

// The thread-local block of one loaded library as its file describes it.
struct TlsModule {
  std::string path;
  std::size_t id = 0;              // by which the dynamic linker finds its blocks
  std::string build_id;            // hexadecimal, empty when the file carries none
  std::size_t block_bytes = 0;     // size of each thread's block
  std::vector<std::byte> initial;  // what a new thread finds in its block: block_bytes bytes
  std::vector<TlsSymbol> symbols;  // by offset
};

// Whether a library of this file name is loaded.
bool is_loaded(std::string_view soname);

// The thread-local variables of the library in this file, which need not be loaded, by offset. Throws TorchStateError:
// not readable, no `.symtab`.
std::vector<TlsSymbol> read_tls_symbols(const std::string& path);

// Reads the symbol table of the loaded library whose file name is `soname`. Costs some milliseconds for a
// file of half a million symbols. Throws TorchStateError: not loaded, not readable, no `.symtab`.
TlsModule read_tls_module(std::string_view soname);

// The calling thread's block of that library. A thread that has none yet gets it.
std::byte* tls_block_of_this_thread(const TlsModule& module) noexcept;

}  // namespace rehearse::torch_state
