// SPDX-License-Identifier: BSD-3-Clause
#include "cli/death/crash_record.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/exec/stack_fault.h>
#include <rehearse_internal/sim/fault_firings.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rehearse::cli {
namespace {

constexpr std::array kFatal = {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

CrashRecord* g_of_world = nullptr;
CrashRecord* g_crash = nullptr;  // null: there is no CrashRecordScope
std::optional<int> (*g_tell)() = nullptr;
std::array<struct sigaction, kFatal.size()> g_before;

template <std::size_t size>
void put(std::array<char, size>& to, std::string_view text) noexcept {
  to = {};
  text.copy(to.data(), to.size() - 1);
}

void note_firing(std::size_t number, const FaultLine* line) {
  auto& faults = g_of_world->faults;
  if (line == nullptr) {
    for (auto& fault : faults) fault.times = 0;
  } else if (number < faults.size()) {
    auto& fault = faults[number];
    fault.times = line->times;
    if (line->times > 1) return;
    const auto& first = line->fired.front();
    fault.rank = first.rank;
    fault.at_ns = first.at.time_since_epoch().count();
    put(fault.call, first.call);
    put(fault.text, line->fault);
  }
}

std::optional<int> noted(int signal, const void* fault) {
  auto* const crash = std::exchange(g_crash, nullptr);
  if (crash == nullptr) return std::nullopt;
  if (fault != nullptr) crash->overflowed_stack_bytes = exec::overflowed_stack_bytes(fault);
  note_crash(*crash, signal);
  return g_tell != nullptr ? g_tell() : std::nullopt;
}

void on_fatal(int signal, siginfo_t* info, void*) {
  const bool is_fault = info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS);
  const auto code = noted(signal, is_fault ? info->si_addr : nullptr);
  const auto index = std::ranges::find(kFatal, signal) - kFatal.begin();
  const auto& before = g_before[static_cast<std::size_t>(index)];
  if (code && (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL) end_process(*code);
  // A fault repeats, so the former handler sees it. A signal that somebody sent does not repeat, so raise it again.
  sigaction(signal, &before, nullptr);
  if (info->si_code <= 0) ::raise(signal);
}

}  // namespace

void note_crash(CrashRecord& crash, int signal) noexcept {
  const auto owner = exec::rank_of_thread();
  crash.rank = owner.rank;
  crash.at_ns = owner.at.time_since_epoch().count();
  crash.signal = signal;
  put(crash.failed_check, exec::failed_check());
  // Last, because the walk along a damaged stack may never end.
  crash.frames = exec::CallSite::capture_to(crash.addresses);
  note_places(crash);
}

void note_places(CrashRecord& crash) noexcept {
  const auto* const script = exec::interpreter();
  if (script == nullptr) return;
  for (std::size_t i = 0; i < crash.frames; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(crash.addresses[i]);
    crash.places[i].front() = '\0';
    if (script->addresses().contains(address)) script->write_place(address, crash.places[i]);
  }
}

void note_call(CrashRecord& crash, std::string_view call) noexcept { put(crash.call, call); }

void end_process(int code) noexcept {
  for (;;) syscall(SYS_exit_group, code);
}

std::string signal_text(int signal) { return fmt::format("SIG{} ({})", sigabbrev_np(signal), strsignal(signal)); }

exec::CallSite site_of(const CrashRecord& crash) {
  std::vector<void*> addresses(crash.addresses.begin(), crash.addresses.begin() + static_cast<long>(crash.frames));
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (crash.places[i].front() != '\0') addresses[i] = exec::interpreter()->address_of(crash.places[i].data());
  }
  return exec::CallSite::from_addresses(addresses);
}

std::vector<FaultLine> faults_of(const CrashRecord& crash) {
  std::vector<FaultLine> lines;
  for (const auto& fault : crash.faults) {
    if (fault.times == 0) continue;
    const auto at = kTimeZero + VirtualDuration(fault.at_ns);
    lines.push_back({fault.text.data(), false, fault.times, {{fault.rank, fault.call.data(), at}}, ""});
  }
  return lines;
}

RankLine line_of(const CrashRecord& crash, RankOutcome state, std::string doing) {
  RankLine line;
  line.rank = crash.rank;
  line.state = state;
  line.doing = std::move(doing);
  line.at = kTimeZero + VirtualDuration(crash.at_ns);
  line.where = site_of(crash).place();
  return line;
}

CrashRecordScope::CrashRecordScope(CrashRecord& crash, std::optional<int> (*tell)()) {
  g_crash = g_of_world = &crash;
  g_tell = tell;
  sim::observe_firings(note_firing);
  struct sigaction action{};
  action.sa_sigaction = on_fatal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &action, &g_before[i]);
}

CrashRecordScope::~CrashRecordScope() {
  g_crash = nullptr;
  sim::observe_firings(nullptr);
  for (std::size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &g_before[i], nullptr);
}

}  // namespace rehearse::cli
