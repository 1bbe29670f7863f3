// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <cxxabi.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/torch_state/torch_state.h>

#include "torch_state/tls/elf_tls.h"
#include "torch_state/tls/tls_inventory.h"
#include "torch_state/tls/tls_layout.h"

namespace rehearse::torch_state {
namespace {

using Reason = TorchStateError::Reason;

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  const std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

Reason reason_of_reading(std::string_view library, std::string& what) {
  try {
    read_tls_module(library);
  } catch (const TorchStateError& error) {
    what = error.what();
    return error.reason();
  }
  ADD_FAILURE() << library << " was accepted";
  return Reason::unreadable;
}

// LibTorch's libraries and their inventory. The CUDA libraries are beside the others; the test reads them without
// loading them.
struct Libraries {
  std::vector<std::string> names;
  TlsInventory inventory;
};

std::vector<Libraries> all_libraries() {
  return {{{"libc10.so", "libtorch_cpu.so"}, torch_inventory()},
          {{"libc10_cuda.so"}, c10_cuda_inventory()},
          {{"libtorch_cuda.so"}, torch_cuda_inventory()}};
}

std::string file_of(const std::string& library) {
  const std::string beside = read_tls_module("libc10.so").path;
  return beside.substr(0, beside.rfind('/') + 1) + library;
}

bool is_there(const Libraries& libraries) { return std::filesystem::exists(file_of(libraries.names.front())); }

TEST(TlsInventory, LibTorchsFiles_EveryVariableHasAnOwner) {
  for (const Libraries& libraries : all_libraries()) {
    if (!is_there(libraries)) continue;  // a LibTorch without CUDA
    for (const std::string& library : libraries.names) {
      const std::vector<TlsSymbol> symbols = read_tls_symbols(file_of(library));
      EXPECT_FALSE(symbols.empty()) << library;
      for (const std::string& name : classify(symbols, libraries.inventory).unknown)
        ADD_FAILURE() << "no entry for {\"" << name << "\"}, " << demangled(name) << " of " << library;
    }
  }
}

TEST(TlsInventory, LibTorchsFiles_EveryEntryAndFamilyIsUsed) {
  for (const Libraries& libraries : all_libraries()) {
    if (!is_there(libraries)) continue;
    std::set<std::string_view> used;
    for (const std::string& library : libraries.names) {
      const ClassifiedTls classified = classify(read_tls_symbols(file_of(library)), libraries.inventory);
      for (const TlsEntry* entry : classified.used_entries) used.insert(entry->symbol);
      for (const TlsFamily* family : classified.used_families) used.insert(family->name);
    }
    for (const TlsEntry& entry : libraries.inventory.entries) EXPECT_TRUE(used.contains(entry.symbol)) << entry.symbol;
    for (const TlsFamily& family : libraries.inventory.families) EXPECT_TRUE(used.contains(family.name)) << family.name;
  }
}

TEST(TlsInventory, Entries_AreUniqueAndGiveAReason) {
  std::set<std::string_view> seen;
  for (const Libraries& libraries : all_libraries()) {
    for (const TlsEntry& entry : libraries.inventory.entries) {
      EXPECT_TRUE(seen.insert(entry.symbol).second) << entry.symbol;
      EXPECT_FALSE(entry.reason.empty()) << entry.symbol;
    }
  }
}

TEST(TlsInventory, Guards_GoWithWhatTheyGuard) {
  const std::vector<TlsSymbol> symbols = {
      {"__tls_guard", 0, 1},
      {"_ZN2at12_GLOBAL__N_13tlsE", 16, 128},
      {"__tls_guard", 144, 1},
      {"_ZN2at6nativeL9workspaceE", 152, 16},
      {"_ZGVZN4c10d19currentProcessGroupEvE2pg", 168, 8},
      {"_ZN2at3newE", 176, 8},
  };
  const ClassifiedTls classified = classify(symbols, torch_inventory());
  using enum TlsScope;
  EXPECT_THAT(classified.scopes, testing::ElementsAre(per_fiber, per_fiber, shared, shared, per_fiber, shared));
  EXPECT_THAT(classified.unknown, testing::ElementsAre("_ZN2at3newE"));
}

TEST(TlsInventory, LoadedLibTorch_IsReadAsItsFile) {
  const TlsModule module = read_tls_module("libc10.so");
  EXPECT_FALSE(module.build_id.empty());
  const std::vector<TlsSymbol> of_file = read_tls_symbols(module.path);
  ASSERT_EQ(module.symbols.size(), of_file.size());
  for (std::size_t k = 0; k < of_file.size(); ++k) EXPECT_EQ(module.symbols[k].name, of_file[k].name);
}

TEST(TlsLayout, LibrariesOfCuda_AreNotInItUnlessTheyAreLoaded) {
  std::vector<std::string> names;
  for (const TlsModule& module : tls_layout().modules) names.push_back(module.path.substr(module.path.rfind('/') + 1));
  EXPECT_THAT(names, testing::ElementsAre("libc10.so", "libtorch_cpu.so"));
}

TEST(TlsLayout, Ranges_LieInTheirBlockAndDoNotOverlap) {
  const TlsLayout& layout = tls_layout();
  const std::vector<TlsRange>& ranges = layout.ranges;
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    EXPECT_LE(ranges[k].offset + ranges[k].bytes, layout.modules[ranges[k].module].block_bytes);
    if (k > 0 && ranges[k].module == ranges[k - 1].module) {
      EXPECT_GT(ranges[k].offset, ranges[k - 1].offset + ranges[k - 1].bytes);
    }
  }
}

TEST(TlsLayout, Ranges_CoverWhatIsPerFiberAndNothingElse) {
  const TlsLayout& layout = tls_layout();
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    const auto& symbols = layout.modules[m].symbols;
    const ClassifiedTls classified = classify(symbols, torch_inventory());
    for (std::size_t k = 0; k < symbols.size(); ++k) {
      const auto covered = std::count_if(layout.ranges.begin(), layout.ranges.end(), [&](const TlsRange& range) {
        return range.module == m && symbols[k].offset < range.offset + range.bytes &&
               range.offset < symbols[k].offset + symbols[k].bytes;
      });
      const TlsScope scope = classified.scopes[k];
      const bool others = scope == TlsScope::shared || scope == TlsScope::per_rank;
      EXPECT_EQ(covered, others ? 0 : 1) << symbols[k].name;
    }
  }
}

TEST(ElfTls, StrippedLibrary_SaysWhichFileAndTheWayOut) {
  std::string what;
  EXPECT_EQ(reason_of_reading("libc.so.6", what), Reason::no_symbol_table);
  EXPECT_THAT(what, testing::HasSubstr("/libc.so.6"));
  EXPECT_THAT(what, testing::HasSubstr("pip install torch==2.11.0"));
}

TEST(ElfTls, LibraryThatIsNotLoaded_IsRefused) {
  std::string what;
  EXPECT_EQ(reason_of_reading("libnowhere.so", what), Reason::not_loaded);
  EXPECT_THAT(what, testing::HasSubstr("libnowhere.so"));
}

}  // namespace
}  // namespace rehearse::torch_state
