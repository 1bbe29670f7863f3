// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <cxxabi.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse_internal/libtorch/version.h>
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

// A LibTorch on this machine. The tests read its files without loading them.
struct Wheel {
  std::string folder;  // of its libraries
  int minor;
};

// LibTorch's libraries and their inventory.
struct Libraries {
  std::vector<std::string> files;
  TlsInventory inventory;
};

std::vector<Libraries> libraries_of(const Wheel& wheel) {
  std::vector<Libraries> all = {{{"libc10.so", "libtorch_cpu.so"}, torch_inventory(wheel.minor)},
                                {{"libc10_cuda.so"}, c10_cuda_inventory(wheel.minor)},
                                {{"libtorch_cuda.so"}, torch_cuda_inventory(wheel.minor)}};
  for (Libraries& each : all) {
    for (std::string& file : each.files) file.insert(0, wheel.folder + "/");
  }
  std::erase_if(all, [](const Libraries& each) { return !std::filesystem::exists(each.files.front()); });  // no CUDA
  return all;
}

// The minor version of LibTorch 2 in `folder`; 0 if there is none.
int minor_in(const std::filesystem::path& folder) {
  std::ifstream header(folder / "include/torch/headeronly/version.h");
  const std::string wanted = "#define TORCH_VERSION_MINOR ";
  for (std::string line; std::getline(header, line);) {
    if (line.starts_with(wanted)) return std::stoi(line.substr(wanted.size()));
  }
  return 0;
}

// The loaded one, and those of REHEARSE_LIBTORCH_WHEELS: folders that have include/ and lib/, separated by colons.
std::vector<Wheel> all_wheels() {
  const std::string loaded = read_tls_module("libc10.so").path;
  std::vector<Wheel> wheels = {{loaded.substr(0, loaded.rfind('/')), libtorch::kMinor}};
  const char* const others = std::getenv("REHEARSE_LIBTORCH_WHEELS");
  std::istringstream folders(others == nullptr ? "" : others);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const int minor = minor_in(folder);
    if (minor == 0) ADD_FAILURE() << "no LibTorch in " << folder;
    wheels.push_back({folder + "/lib", minor});
  }
  return wheels;
}

TEST(TlsInventory, LibTorchsFiles_EveryVariableHasAnOwner) {
  for (const Wheel& wheel : all_wheels()) {
    for (const Libraries& libraries : libraries_of(wheel)) {
      for (const std::string& file : libraries.files) {
        const std::vector<TlsSymbol> symbols = read_tls_symbols(file);
        EXPECT_FALSE(symbols.empty()) << file;
        for (const std::string& name : classify(symbols, libraries.inventory).unknown)
          ADD_FAILURE() << "no entry for {\"" << name << "\"}, " << demangled(name) << " of " << file;
      }
    }
  }
}

TEST(TlsInventory, LibTorchsFiles_EveryEntryAndFamilyIsUsed) {
  for (const Wheel& wheel : all_wheels()) {
    for (const Libraries& libraries : libraries_of(wheel)) {
      std::set<std::string_view> used;
      for (const std::string& file : libraries.files) {
        const ClassifiedTls classified = classify(read_tls_symbols(file), libraries.inventory);
        for (const TlsEntry* entry : classified.used_entries) used.insert(entry->symbol);
        for (const TlsFamily* family : classified.used_families) used.insert(family->name);
      }
      for (const TlsEntry& entry : libraries.inventory.entries)
        EXPECT_TRUE(used.contains(entry.symbol)) << entry.symbol << " in 2." << wheel.minor;
      for (const TlsFamily& family : libraries.inventory.families)
        EXPECT_TRUE(used.contains(family.name)) << family.name << " in 2." << wheel.minor;
    }
  }
}

// A variable of a header lies in each library that uses it.
TEST(TlsInventory, Entries_AreUniqueAndGiveAReason) {
  std::set<std::string_view> seen;
  for (const Libraries& libraries : libraries_of(all_wheels().front())) {
    for (const TlsEntry& entry : libraries.inventory.entries) {
      const bool is_new = seen.insert(entry.symbol).second;
      EXPECT_TRUE(is_new || entry.symbol == kForwardingFlags.symbol) << entry.symbol;
      EXPECT_FALSE(entry.reason.empty()) << entry.symbol;
    }
  }
}

TEST(TlsInventory, Rows_HoldForTheirVersions) {
  constexpr TlsEntry kRows[] = {{"old", TlsScope::shared, "", until(12)},
                                {"all", TlsScope::shared, ""},
                                {"new", TlsScope::shared, "", since(13)}};
  const auto names_in = [&](int minor) {
    std::vector<std::string_view> names;
    for (const TlsEntry& entry : inventory_of(kRows, {}, minor).entries) names.push_back(entry.symbol);
    return names;
  };
  EXPECT_THAT(names_in(12), testing::ElementsAre("old", "all"));
  EXPECT_THAT(names_in(13), testing::ElementsAre("all", "new"));
}

TEST(TlsInventory, FlagsOfHeaders_AreFoundByTheirLastName) {
  const std::vector<TlsSymbol> symbols = {{"_ZZN4c10d7Backend3newERN2at6TensorEE19forwardingGuardFlag", 0, 1, true},
                                          {"_ZN3own4flagE", 1, 1, false}};
  const ClassifiedTls classified = classify(symbols, executable_inventory(14));
  EXPECT_THAT(classified.scopes, testing::ElementsAre(TlsScope::per_fiber_optional, TlsScope::shared));
  EXPECT_TRUE(is_of_libtorch(symbols[0].name));
  EXPECT_FALSE(is_of_libtorch(symbols[1].name));
  EXPECT_THAT(classify(symbols, executable_inventory(13)).unknown, testing::SizeIs(2));
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
  EXPECT_THAT(what, testing::HasSubstr("pip install torch==" + std::string(libtorch::kVersion)));
}

TEST(ElfTls, LibraryThatIsNotLoaded_IsRefused) {
  std::string what;
  EXPECT_EQ(reason_of_reading("libnowhere.so", what), Reason::not_loaded);
  EXPECT_THAT(what, testing::HasSubstr("libnowhere.so"));
}

}  // namespace
}  // namespace rehearse::torch_state
