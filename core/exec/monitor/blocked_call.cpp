// SPDX-License-Identifier: BSD-3-Clause
// The name of the system call in which a thread is blocked.
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string_view>

#include <sys/syscall.h>
#include <ucontext.h>

#include <fmt/format.h>

#include <rehearse_internal/exec/watchdog.h>

namespace rehearse::exec {
namespace {

struct SystemCall {
  long number;
  std::string_view name;
};

constexpr std::array kSystemCalls = {
    SystemCall{SYS_accept, "accept()"},
    SystemCall{SYS_accept4, "accept4()"},
    SystemCall{SYS_clock_nanosleep, "clock_nanosleep()"},
    SystemCall{SYS_connect, "connect()"},
    SystemCall{SYS_epoll_pwait, "epoll_pwait()"},
    SystemCall{SYS_fcntl, "fcntl()"},
    SystemCall{SYS_flock, "flock()"},
    SystemCall{SYS_futex, "a futex (a lock or condition of the system)"},
    SystemCall{SYS_msgrcv, "msgrcv()"},
    SystemCall{SYS_openat, "open()"},
    SystemCall{SYS_ppoll, "ppoll()"},
    SystemCall{SYS_pselect6, "pselect()"},
    SystemCall{SYS_read, "read()"},
    SystemCall{SYS_readv, "readv()"},
    SystemCall{SYS_recvfrom, "recv()"},
    SystemCall{SYS_recvmsg, "recvmsg()"},
    SystemCall{SYS_rt_sigsuspend, "sigsuspend()"},
    SystemCall{SYS_rt_sigtimedwait, "sigwait()"},
    SystemCall{SYS_semop, "semop()"},
    SystemCall{SYS_sendmsg, "sendmsg()"},
    SystemCall{SYS_sendto, "send()"},
    SystemCall{SYS_wait4, "waitpid()"},
    SystemCall{SYS_waitid, "waitid()"},
    SystemCall{SYS_write, "write()"},
    SystemCall{SYS_writev, "writev()"},
    SystemCall{SYS_epoll_wait, "epoll_wait()"},
    SystemCall{SYS_open, "open()"},
    SystemCall{SYS_pause, "pause()"},
    SystemCall{SYS_poll, "poll()"},
    SystemCall{SYS_select, "select()"},
};

std::string_view name_of_call(long number) noexcept {
  for (const auto& call : kSystemCalls) {
    if (call.number == number) return call.name;
  }
  return "";
}

// True for the instruction that enters the kernel (syscall).
bool is_entry(const std::uint8_t* code) noexcept { return code[0] == 0x0f && code[1] == 0x05; }

}  // namespace

std::string_view interrupted_call(const void* context) noexcept {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const next = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
  // True if the kernel will restart the call after the handler. Then RAX contains the call's number again.
  const bool again = is_entry(next);
  if (!again && (registers[REG_RAX] != -EINTR || !is_entry(next - 2))) return "";
  const auto name = again ? name_of_call(registers[REG_RAX]) : "";
  return name.empty() ? "a system call" : name;
}

std::string blocked_call(pid_t thread) {
  std::ifstream file(fmt::format("/proc/{}/syscall", thread));
  long number = -1;
  // The file has the number and the arguments of the call ("42 0x3 ..."), "running" if the thread is not in the kernel,
  // or -1 if it is in the kernel, but not for a call.
  if (!(file >> number) || number < 0) return "";
  const auto name = name_of_call(number);
  return name.empty() ? fmt::format("system call {}", number) : std::string(name);
}

}  // namespace rehearse::exec
