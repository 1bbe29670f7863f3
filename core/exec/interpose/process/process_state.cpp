// SPDX-License-Identifier: BSD-3-Clause
// State that libc keeps per process, kept here for each rank: random numbers, strtok(), broken-down times.
#include "process_state.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

int state_rand() REHEARSE_INTERPOSES("rand");
void state_srand(unsigned seed) REHEARSE_INTERPOSES("srand");
long state_random() REHEARSE_INTERPOSES("random");
void state_srandom(unsigned seed) REHEARSE_INTERPOSES("srandom");
char* state_initstate(unsigned seed, char* table, size_t bytes) REHEARSE_INTERPOSES("initstate");
char* state_setstate(char* table) REHEARSE_INTERPOSES("setstate");
double state_drand48() REHEARSE_INTERPOSES("drand48");
double state_erand48(unsigned short* from) REHEARSE_INTERPOSES("erand48");
long state_lrand48() REHEARSE_INTERPOSES("lrand48");
long state_nrand48(unsigned short* from) REHEARSE_INTERPOSES("nrand48");
long state_mrand48() REHEARSE_INTERPOSES("mrand48");
long state_jrand48(unsigned short* from) REHEARSE_INTERPOSES("jrand48");
void state_srand48(long seed) REHEARSE_INTERPOSES("srand48");
unsigned short* state_seed48(unsigned short* seed) REHEARSE_INTERPOSES("seed48");
void state_lcong48(unsigned short* parameters) REHEARSE_INTERPOSES("lcong48");
char* state_strtok(char* text, const char* delimiters) REHEARSE_INTERPOSES("strtok");
tm* state_localtime(const time_t* time) REHEARSE_INTERPOSES("localtime");
tm* state_gmtime(const time_t* time) REHEARSE_INTERPOSES("gmtime");
char* state_asctime(const tm* time) REHEARSE_INTERPOSES("asctime");
char* state_ctime(const time_t* time) REHEARSE_INTERPOSES("ctime");

namespace {

constinit Real<int (*)()> real_rand("rand");
constinit Real<void (*)(unsigned)> real_srand("srand");
constinit Real<long (*)()> real_random("random");
constinit Real<void (*)(unsigned)> real_srandom("srandom");
constinit Real<char* (*)(unsigned, char*, size_t)> real_initstate("initstate");
constinit Real<char* (*)(char*)> real_setstate("setstate");
constinit Real<double (*)()> real_drand48("drand48");
constinit Real<double (*)(unsigned short*)> real_erand48("erand48");
constinit Real<long (*)()> real_lrand48("lrand48");
constinit Real<long (*)(unsigned short*)> real_nrand48("nrand48");
constinit Real<long (*)()> real_mrand48("mrand48");
constinit Real<long (*)(unsigned short*)> real_jrand48("jrand48");
constinit Real<void (*)(long)> real_srand48("srand48");
constinit Real<unsigned short* (*)(unsigned short*)> real_seed48("seed48");
constinit Real<void (*)(unsigned short*)> real_lcong48("lcong48");
constinit Real<char* (*)(char*, const char*)> real_strtok("strtok");
constinit Real<tm* (*)(const time_t*)> real_localtime("localtime");
constinit Real<tm* (*)(const time_t*)> real_gmtime("gmtime");
constinit Real<char* (*)(const tm*)> real_asctime("asctime");
constinit Real<char* (*)(const time_t*)> real_ctime("ctime");

// Calls `of_rank` with the state of the calling rank; outside of ranks calls `real` with the arguments.
template <class OfRank, class Function, class... Arguments>
auto in_process(const OfRank& of_rank, Real<Function>& real, Arguments... arguments) {
  Fiber* const fiber = fiber_of_thread();
  if (fiber == nullptr) return real(arguments...);
  return world_of(*fiber).processes.with(fiber->rank, fiber->world->options.ranks, of_rank);
}

long next_random(ProcessState& state) {
  std::int32_t number = 0;
  ::random_r(&state.random, &number);
  return number;
}

// The table in use, as initstate() and setstate() return it. `random.state` points behind the table's first word, in
// which glibc keeps the table's kind.
char* table_in_use(const ProcessState& state) { return reinterpret_cast<char*>(state.random.state - 1); }

// Copies a result of libc's own function, because the next caller would overwrite it.
tm* keep(ProcessState& state, const tm* time) {
  if (time == nullptr) return nullptr;
  state.broken_down_time = *time;
  return &state.broken_down_time;
}

char* keep(ProcessState& state, const char* text) {
  if (text == nullptr) return nullptr;
  const auto bytes = std::min(std::strlen(text), state.time_text.size() - 1);
  std::memcpy(state.time_text.data(), text, bytes);
  state.time_text[bytes] = '\0';
  return state.time_text.data();
}

template <std::size_t size>
void write_number(std::array<char, size>& text, int number) {
  *fmt::format_to_n(text.data(), size - 1, "{}", number).out = '\0';
}

}  // namespace

ProcessState::ProcessState(int rank, int ranks) {
  // The initial state of rand() in a program that has not called srand().
  ::initstate_r(1, random_table.data(), random_table.size(), &random);
  write_number(rank_text, rank);
  write_number(ranks_text, ranks);
}

int state_rand() {
  return in_process([](ProcessState& state) { return static_cast<int>(next_random(state)); }, real_rand);
}

void state_srand(unsigned seed) {
  in_process([&](ProcessState& state) { ::srandom_r(seed, &state.random); }, real_srand, seed);
}

long state_random() { return in_process(next_random, real_random); }

void state_srandom(unsigned seed) {
  in_process([&](ProcessState& state) { ::srandom_r(seed, &state.random); }, real_srandom, seed);
}

char* state_initstate(unsigned seed, char* table, size_t bytes) {
  const auto of_rank = [&](ProcessState& state) {
    char* const before = table_in_use(state);
    return ::initstate_r(seed, table, bytes, &state.random) == 0 ? before : nullptr;
  };
  return in_process(of_rank, real_initstate, seed, table, bytes);
}

char* state_setstate(char* table) {
  const auto of_rank = [&](ProcessState& state) {
    char* const before = table_in_use(state);
    return ::setstate_r(table, &state.random) == 0 ? before : nullptr;
  };
  return in_process(of_rank, real_setstate, table);
}

double state_drand48() {
  const auto of_rank = [](ProcessState& state) {
    double number = 0;
    ::drand48_r(&state.drand48, &number);
    return number;
  };
  return in_process(of_rank, real_drand48);
}

double state_erand48(unsigned short* from) {
  const auto of_rank = [&](ProcessState& state) {
    double number = 0;
    ::erand48_r(from, &state.drand48, &number);
    return number;
  };
  return in_process(of_rank, real_erand48, from);
}

long state_lrand48() {
  const auto of_rank = [](ProcessState& state) {
    long number = 0;
    ::lrand48_r(&state.drand48, &number);
    return number;
  };
  return in_process(of_rank, real_lrand48);
}

long state_nrand48(unsigned short* from) {
  const auto of_rank = [&](ProcessState& state) {
    long number = 0;
    ::nrand48_r(from, &state.drand48, &number);
    return number;
  };
  return in_process(of_rank, real_nrand48, from);
}

long state_mrand48() {
  const auto of_rank = [](ProcessState& state) {
    long number = 0;
    ::mrand48_r(&state.drand48, &number);
    return number;
  };
  return in_process(of_rank, real_mrand48);
}

long state_jrand48(unsigned short* from) {
  const auto of_rank = [&](ProcessState& state) {
    long number = 0;
    ::jrand48_r(from, &state.drand48, &number);
    return number;
  };
  return in_process(of_rank, real_jrand48, from);
}

void state_srand48(long seed) {
  in_process([&](ProcessState& state) { ::srand48_r(seed, &state.drand48); }, real_srand48, seed);
}

unsigned short* state_seed48(unsigned short* seed) {
  const auto of_rank = [&](ProcessState& state) {
    ::seed48_r(seed, &state.drand48);
    return &state.drand48.__old_x[0];
  };
  return in_process(of_rank, real_seed48, seed);
}

void state_lcong48(unsigned short* parameters) {
  in_process([&](ProcessState& state) { ::lcong48_r(parameters, &state.drand48); }, real_lcong48, parameters);
}

char* state_strtok(char* text, const char* delimiters) {
  const auto of_rank = [&](ProcessState& state) { return ::strtok_r(text, delimiters, &state.strtok_rest); };
  return in_process(of_rank, real_strtok, text, delimiters);
}

tm* state_localtime(const time_t* time) {
  return in_process([&](ProcessState& state) { return keep(state, real_localtime(time)); }, real_localtime, time);
}

tm* state_gmtime(const time_t* time) {
  return in_process([&](ProcessState& state) { return keep(state, real_gmtime(time)); }, real_gmtime, time);
}

char* state_asctime(const tm* time) {
  return in_process([&](ProcessState& state) { return keep(state, real_asctime(time)); }, real_asctime, time);
}

// Converts the result of localtime(), as libc does.
char* state_ctime(const time_t* time) {
  const auto of_rank = [&](ProcessState& state) {
    const tm* const broken_down = keep(state, real_localtime(time));
    return broken_down != nullptr ? keep(state, real_asctime(broken_down)) : nullptr;
  };
  return in_process(of_rank, real_ctime, time);
}

std::span<const Interposed> process_state_functions() {
  static const std::array functions = {
      Interposed{"rand", reinterpret_cast<const void*>(state_rand)},
      Interposed{"srand", reinterpret_cast<const void*>(state_srand)},
      Interposed{"random", reinterpret_cast<const void*>(state_random)},
      Interposed{"srandom", reinterpret_cast<const void*>(state_srandom)},
      Interposed{"initstate", reinterpret_cast<const void*>(state_initstate)},
      Interposed{"setstate", reinterpret_cast<const void*>(state_setstate)},
      Interposed{"drand48", reinterpret_cast<const void*>(state_drand48)},
      Interposed{"erand48", reinterpret_cast<const void*>(state_erand48)},
      Interposed{"lrand48", reinterpret_cast<const void*>(state_lrand48)},
      Interposed{"nrand48", reinterpret_cast<const void*>(state_nrand48)},
      Interposed{"mrand48", reinterpret_cast<const void*>(state_mrand48)},
      Interposed{"jrand48", reinterpret_cast<const void*>(state_jrand48)},
      Interposed{"srand48", reinterpret_cast<const void*>(state_srand48)},
      Interposed{"seed48", reinterpret_cast<const void*>(state_seed48)},
      Interposed{"lcong48", reinterpret_cast<const void*>(state_lcong48)},
      Interposed{"strtok", reinterpret_cast<const void*>(state_strtok)},
      Interposed{"localtime", reinterpret_cast<const void*>(state_localtime)},
      Interposed{"gmtime", reinterpret_cast<const void*>(state_gmtime)},
      Interposed{"asctime", reinterpret_cast<const void*>(state_asctime)},
      Interposed{"ctime", reinterpret_cast<const void*>(state_ctime)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
