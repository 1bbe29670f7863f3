// SPDX-License-Identifier: BSD-3-Clause
// Contract: an exempt library's calls go to libc, however the loader binds them. Other libraries are unchanged, and
// memory that the loader made read-only is read-only again afterwards.
#include <rehearse_internal/exec/exempt_libraries.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

// One of three builds of waiting_library.cpp, which differ in how the loader binds their calls.
class WaitingLibrary {
 public:
  explicit WaitingLibrary(const std::string& build)
      : path_(std::string(WAITING_LIBRARIES) + "/libwaiting_" + build + ".so"),
        handle_(::dlopen(path_.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
  }
  WaitingLibrary(const WaitingLibrary&) = delete;
  WaitingLibrary& operator=(const WaitingLibrary&) = delete;
  ~WaitingLibrary() { ::dlclose(handle_); }

  template <class Result>
  Result call(const char* name) const {
    return reinterpret_cast<Result (*)()>(::dlsym(handle_, (std::string("waiting_library_") + name).c_str()))();
  }

  std::vector<ExemptLibrary> exempt() const {
    return exempt_libraries([this](std::string_view path) { return path == path_; });
  }

  const std::string& path() const { return path_; }

  // An address in the part of the library that the loader makes read-only after binding; 0 if there is none.
  ElfW(Addr) sealed() const {
    struct Search {
      const std::string& path;
      ElfW(Addr) found;
    } search{path_, 0};
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
          auto& searched = *static_cast<Search*>(data);
          if (searched.path != info->dlpi_name) return 0;
          for (int k = 0; k < info->dlpi_phnum; ++k) {
            if (info->dlpi_phdr[k].p_type == PT_GNU_RELRO)
              searched.found = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;
          }
          return 1;
        },
        &search);
    return search.found;
  }

 private:
  std::string path_;
  void* handle_;
};

// The effects of the library's calls in a rank.
struct Effects {
  VirtualDuration slept{};  // in the world's time
  VirtualDuration slept_by_pointer{};
  bool thread_is_the_ranks = false;
  bool std_thread_is_the_ranks = false;
  bool clock_is_the_worlds = false;

  bool operator==(const Effects&) const = default;
};

constexpr Effects kSuspends{1ms, 1ms, true, true, true};
constexpr Effects kBlocks{};

Effects effects_of(const WaitingLibrary& library) {
  World w(1);
  Effects seen;
  const auto outcome = w.run([&](int) {
    library.call<void>("sleep");
    seen.slept = this_rank::now() - kTimeZero;
    library.call<void>("sleep_by_pointer");
    seen.slept_by_pointer = this_rank::now() - kTimeZero - seen.slept;
    seen.thread_is_the_ranks = library.call<pid_t>("ask_thread") == ::gettid();
    seen.std_thread_is_the_ranks = library.call<pid_t>("ask_std_thread") == ::gettid();
    seen.clock_is_the_worlds = library.call<long>("seconds") == w.clock.epochs().realtime / 1s;
    library.call<void>("yield");
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  return seen;
}

// The protection of the mapping with this address, as the kernel lists it: "r--p".
std::string protection_of(ElfW(Addr) address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long end = 0;
    char protection[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &first, &end, protection) != 3) continue;
    if (address >= first && address < end) return protection;
  }
  return "not mapped";
}

class ExemptLibraries : public ::testing::TestWithParam<const char*> {
 protected:
  const WaitingLibrary library{GetParam()};
};

TEST_P(ExemptLibraries, FunctionsThatWereBound_AreLibcsOwnFromThenOn) {
  EXPECT_EQ(effects_of(library), kSuspends);
  const auto changed = library.exempt();
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].path, library.path());
  EXPECT_EQ(effects_of(library), kBlocks);
}

TEST_P(ExemptLibraries, FunctionsThatWereNeverCalled_AreLibcsOwnAtTheFirstCall) {
  ASSERT_EQ(library.exempt().size(), 1u);
  EXPECT_EQ(effects_of(library), kBlocks);
}

TEST_P(ExemptLibraries, SecondCall_ChangesNothingMore) {
  EXPECT_EQ(library.exempt().size(), 1u);
  EXPECT_EQ(library.exempt().size(), 0u);
  EXPECT_EQ(effects_of(library), kBlocks);
  EXPECT_EQ(library.exempt().size(), 0u);
}

TEST_P(ExemptLibraries, WhatWasSealed_IsSealedAgain) {
  const auto sealed = library.sealed();
  ASSERT_NE(sealed, 0u);
  EXPECT_EQ(protection_of(sealed), "r--p");
  EXPECT_EQ(library.exempt().size(), 1u);
  EXPECT_EQ(protection_of(sealed), "r--p");
}

INSTANTIATE_TEST_SUITE_P(Builds, ExemptLibraries, ::testing::Values("lazy", "now", "without_plt"));

TEST(ExemptLibrary, LoadedLater_IsTakenByTheNextCall) {
  const auto both = [](std::string_view path) { return path.find("/libwaiting_") != std::string_view::npos; };
  const WaitingLibrary first("lazy");
  EXPECT_EQ(exempt_libraries(both).size(), 1u);
  const WaitingLibrary second("now");
  EXPECT_EQ(effects_of(second), kSuspends);
  const auto changed = exempt_libraries(both);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].path, second.path());
  EXPECT_EQ(effects_of(first), kBlocks);
  EXPECT_EQ(effects_of(second), kBlocks);
}

// exempt_libraries() never asks the predicate about the executable, which contains our functions. Libraries that the
// predicate refuses are unchanged.
TEST(ExemptLibrary, OthersThatWereNotTaken_AreAsBefore) {
  const WaitingLibrary taken("lazy");
  const WaitingLibrary other("now");
  std::vector<std::string> asked;
  const auto changed = exempt_libraries([&](std::string_view path) {
    asked.emplace_back(path);
    return path == taken.path();
  });
  EXPECT_EQ(changed.size(), 1u);
  EXPECT_THAT(asked, testing::AllOf(testing::Contains(taken.path()), testing::Contains(other.path()),
                                    testing::Contains(testing::HasSubstr("libstdc++")),
                                    testing::Each(testing::HasSubstr(".so"))));
  EXPECT_EQ(effects_of(other), kSuspends);
}

TEST(ExemptLibrary, InARank_WorksToo) {
  const WaitingLibrary library("now");
  World w(2);
  std::vector<std::size_t> changed;
  const auto outcome = w.run([&](int) { changed.push_back(library.exempt().size()); });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(changed, std::vector<std::size_t>({1, 0}));
}

}  // namespace
}  // namespace rehearse::exec::test
