// SPDX-License-Identifier: BSD-3-Clause
// OpenMP regions, including LibTorch's own. Their threads belong to libgomp or libomp, which keeps them for the thread
// that all ranks share, and waits for them in the kernel. As fibers they would wait forever, so a region runs as a
// native section.
#include "openmp.h"

#include <array>
#include <cstdarg>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <dlfcn.h>

#include <fmt/format.h>

#include "exec/fiber/native_section.h"
#include "exec/interpose/real.h"

namespace rehearse::exec::interpose {

using Region = void (*)(void*);

void openmp_parallel(Region region, void* data, unsigned threads, unsigned flags) REHEARSE_INTERPOSES("GOMP_parallel");
unsigned openmp_reductions(Region region, void* data, unsigned threads, unsigned flags)
    REHEARSE_INTERPOSES("GOMP_parallel_reductions");
void openmp_sections(Region region, void* data, unsigned threads, unsigned count, unsigned flags)
    REHEARSE_INTERPOSES("GOMP_parallel_sections");
void openmp_teams(Region region, void* data, unsigned teams, unsigned limit, unsigned flags)
    REHEARSE_INTERPOSES("GOMP_teams_reg");

// Code that is compiled for LLVM's run-time library (libomp, libiomp5) starts all regions with this function. The
// function `region` gets pointers to two numbers, followed by `count` pointers of the caller.
void openmp_fork_call(void* location, int count, void* region, ...) REHEARSE_INTERPOSES("__kmpc_fork_call");

namespace {

// The parameters of a region that is one loop, with or without a chunk size.
#define REHEARSE_LOOP long start, long end, long step, long chunk
#define REHEARSE_LOOP_AT_RUN_TIME long start, long end, long step

using Parallel = void (*)(Region, void*, unsigned, unsigned);
using Reductions = unsigned (*)(Region, void*, unsigned, unsigned);
using Sections = void (*)(Region, void*, unsigned, unsigned, unsigned);
using Loop = void (*)(Region, void*, unsigned, REHEARSE_LOOP, unsigned);
using LoopAtRunTime = void (*)(Region, void*, unsigned, REHEARSE_LOOP_AT_RUN_TIME, unsigned);

constinit Real<Parallel> real_parallel("GOMP_parallel");
constinit Real<Reductions> real_reductions("GOMP_parallel_reductions");
constinit Real<Sections> real_sections("GOMP_parallel_sections");
constinit Real<Sections> real_teams("GOMP_teams_reg");
constinit Real<int (*)()> real_team_size("omp_get_num_threads");

// The threads of a region run OnBehalf::run() instead of the region itself.
struct OnBehalf {
  Fiber& fiber;
  Region region;
  void* data;
  NativeTeam team{};

  static void run(void* self) {
    auto& call = *static_cast<OnBehalf*>(self);
    const bool helps = RankExecutor::current() == nullptr;
    if (!helps) call.team.note_size(real_team_size());
    {
      const NativeSection section(call.fiber);
      call.region(call.data);
    }
    if (helps) call.team.note_gone();
  }
};

// In an executable that refers to libgomp only by GOMP_parallel, our definition satisfies the reference, so the
// executable is not linked with libgomp.
void require_libgomp() noexcept {
  static const bool found =
      ::dlsym(RTLD_NEXT, "GOMP_parallel") != nullptr || ::dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr;
  static_cast<void>(found);
}

// Calls libgomp's function `real`; in a rank, inside a native section.
template <class Function, class... Arguments>
auto run_region(Real<Function>& real, Region region, void* data, Arguments... arguments) {
  require_libgomp();
  Fiber* const fiber = fiber_of_thread();
  if (fiber == nullptr) return real(region, data, arguments...);
  OnBehalf call{*fiber, region, data};
  const NativeSection section(*fiber);
  return real(static_cast<Region>(OnBehalf::run), static_cast<void*>(&call), arguments...);
}

// fork_by() always passes this many arguments. libomp reads only the first `count` of them.
constexpr int kForkArguments = 128;
using ForkArguments = std::array<void*, kForkArguments>;
using ForkCall = void(void*, int, void*, ...);

template <std::size_t... index>
void fork_by(ForkCall* real, void* location, int count, void* region, const ForkArguments& arguments,
             std::index_sequence<index...>) {
  real(location, count, region, arguments[index]...);
}

}  // namespace

void openmp_fork_call(void* location, int count, void* region, ...) {
  static ForkCall* const real = reinterpret_cast<ForkCall*>(find_real("__kmpc_fork_call", nullptr));
  if (count > kForkArguments) {
    throw std::length_error(fmt::format("an OpenMP region has {} arguments; with Rehearse and libomp it has at most {}",
                                        count, kForkArguments));
  }
  ForkArguments arguments{};
  std::va_list list;
  va_start(list, region);
  for (int k = 0; k < count; ++k) arguments[static_cast<std::size_t>(k)] = va_arg(list, void*);
  va_end(list);
  std::optional<NativeSection> section;
  if (Fiber* const fiber = fiber_of_thread()) section.emplace(*fiber);
  fork_by(real, location, count, region, arguments, std::make_index_sequence<kForkArguments>());
}

void openmp_parallel(Region region, void* data, unsigned threads, unsigned flags) {
  run_region(real_parallel, region, data, threads, flags);
}

unsigned openmp_reductions(Region region, void* data, unsigned threads, unsigned flags) {
  return run_region(real_reductions, region, data, threads, flags);
}

void openmp_sections(Region region, void* data, unsigned threads, unsigned count, unsigned flags) {
  run_region(real_sections, region, data, threads, count, flags);
}

void openmp_teams(Region region, void* data, unsigned teams, unsigned limit, unsigned flags) {
  run_region(real_teams, region, data, teams, limit, flags);
}

// Defines the function `name`, which starts a region that is one loop. `symbol`: libgomp's name of this function.
#define REHEARSE_OPENMP_LOOP(name, symbol)                                                                           \
  void name(Region region, void* data, unsigned threads, REHEARSE_LOOP, unsigned flags) REHEARSE_INTERPOSES(symbol); \
  void name(Region region, void* data, unsigned threads, REHEARSE_LOOP, unsigned flags) {                            \
    static constinit Real<Loop> real(symbol);                                                                        \
    run_region(real, region, data, threads, start, end, step, chunk, flags);                                         \
  }
#define REHEARSE_OPENMP_LOOP_AT_RUN_TIME(name, symbol)                                                \
  void name(Region region, void* data, unsigned threads, REHEARSE_LOOP_AT_RUN_TIME, unsigned flags)   \
      REHEARSE_INTERPOSES(symbol);                                                                    \
  void name(Region region, void* data, unsigned threads, REHEARSE_LOOP_AT_RUN_TIME, unsigned flags) { \
    static constinit Real<LoopAtRunTime> real(symbol);                                                \
    run_region(real, region, data, threads, start, end, step, flags);                                 \
  }

REHEARSE_OPENMP_LOOP(openmp_static, "GOMP_parallel_loop_static")
REHEARSE_OPENMP_LOOP(openmp_dynamic, "GOMP_parallel_loop_dynamic")
REHEARSE_OPENMP_LOOP(openmp_guided, "GOMP_parallel_loop_guided")
REHEARSE_OPENMP_LOOP(openmp_nonmonotonic_dynamic, "GOMP_parallel_loop_nonmonotonic_dynamic")
REHEARSE_OPENMP_LOOP(openmp_nonmonotonic_guided, "GOMP_parallel_loop_nonmonotonic_guided")
REHEARSE_OPENMP_LOOP_AT_RUN_TIME(openmp_runtime, "GOMP_parallel_loop_runtime")
REHEARSE_OPENMP_LOOP_AT_RUN_TIME(openmp_nonmonotonic_runtime, "GOMP_parallel_loop_nonmonotonic_runtime")
REHEARSE_OPENMP_LOOP_AT_RUN_TIME(openmp_maybe_runtime, "GOMP_parallel_loop_maybe_nonmonotonic_runtime")

void refuse_openmp(const Fiber& fiber, const char* library) {
  throw std::logic_error(
      fmt::format("rank {} would start threads of {} outside of the OpenMP regions that Rehearse knows (those of GCC "
                  "since 4.9, and of "
                  "clang): as fibers they would stop all ranks. Run with OMP_NUM_THREADS=1, or compile it anew",
                  fiber.rank, library));
}

const char* openmp_library_of(const void* start) noexcept {
  Dl_info info{};
  if (::dladdr(start, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  const std::string_view path = info.dli_fname;
  const auto file = path.substr(path.rfind('/') + 1);
  for (const char* const library : {"libgomp", "libomp", "libiomp5"}) {
    if (file.starts_with(library)) return library;
  }
  return nullptr;
}

}  // namespace rehearse::exec::interpose
