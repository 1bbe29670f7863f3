// SPDX-License-Identifier: BSD-3-Clause
#include "preempt.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/exec/this_rank.h>

#include "exec/call_site/symbolize.h"

namespace rehearse::exec::interpose {
namespace {

enum class Caller { user, library, standard_header, torch_header };

bool is_in_header(const Frame& frame, std::string_view folder, std::string_view name_space) {
  if (!frame.file.empty()) return frame.file.find(folder) != std::string::npos;
  return frame.function.starts_with(name_space) || frame.function.starts_with("void " + std::string(name_space));
}

Caller look_up(void* return_address) {
  if (in_foreign_library(return_address)) return Caller::library;
  const auto& frames = resolve(return_address);
  if (std::ranges::any_of(frames, [](const auto& frame) { return frame.users_own; })) return Caller::user;
  const auto is_standard = [](const auto& each) { return is_in_header(each.frame, "/c++/", "std::"); };
  const auto is_of_torch = [](const auto& each) { return is_in_header(each.frame, "/torch/include/", "torch::"); };
  if (std::ranges::all_of(frames, is_standard)) return Caller::standard_header;
  const bool is_of_headers =
      std::ranges::all_of(frames, [&](const auto& each) { return is_standard(each) || is_of_torch(each); });
  return is_of_headers ? Caller::torch_header : Caller::library;
}

Caller caller_at(void* return_address) {
  static std::mutex mutex;  // worlds may run on several threads
  static std::unordered_map<void*, Caller> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(return_address); found != known.end()) return found->second;
  const Caller caller = look_up(return_address);
  known.emplace(return_address, caller);
  return caller;
}

// At -O0, std::mutex::lock() is a separate function, and the return address lies in lock(). Therefore this function
// searches the stack for the first caller outside of the C++ library's headers.
Caller caller_around(void* return_address) {
  constexpr std::size_t kFrames = 16;
  std::array<void*, kFrames> stack;
  const auto end = stack.begin() + CallSite::capture_to(stack);
  const auto begin = std::find(stack.begin(), end, return_address);
  const auto outside = std::find_if(begin, end, [](void* at) { return caller_at(at) != Caller::standard_header; });
  return outside == end ? Caller::library : caller_at(*outside);
}

// Every call counts as a change of its file. A path is compared as a text, from the root on.
Access access_to_path(const char* path) {
  if (path == nullptr || !current_fiber()->world->switcher.records_accesses()) return {};
  std::filesystem::path whole(path);
  std::array<char, PATH_MAX> folder;
  if (whole.is_relative() && ::syscall(SYS_getcwd, folder.data(), folder.size()) > 0) whole = folder.data() / whole;
  return this_rank::access_to("file", whole.lexically_normal().native(), true);
}

Access access_to_file(int file) {
  if (!current_fiber()->world->switcher.records_accesses()) return {};
  std::array<char, PATH_MAX> path;
  const auto link = "/proc/self/fd/" + std::to_string(file);
  const auto length = ::syscall(SYS_readlink, link.c_str(), path.data(), path.size());
  return length > 0 ? this_rank::access_to("file", {path.data(), static_cast<std::size_t>(length)}, true) : Access();
}

bool notes_file_calls(const Fiber& fiber) noexcept {
  const auto& options = fiber.world->options;
  return options.preempt || options.file_time > VirtualDuration::zero();
}

// The call takes a drawn part of ExecutorOptions::file_time.
void spend_file_time(Fiber& fiber) {
  constexpr std::uint32_t kSteps = 16;
  const auto most = fiber.world->options.file_time;
  if (most == VirtualDuration::zero()) return;
  const auto step = fiber.world->switcher.choose_number(ChoiceKind::latency, kSteps);
  if (step > 0) this_rank::pause(most * step / (kSteps - 1), "a call on a file");
}

template <class AccessOf>
void make_file_call(void* return_address, const AccessOf& access) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || !notes_file_calls(*fiber) || !is_for_the_user(return_address)) return;
  const int error = errno;
  spend_file_time(*fiber);
  fiber->world->switcher.preempt(*fiber, access());
  errno = error;
}

}  // namespace

bool is_users_call(void* return_address) {
  const NativeScope looking;  // the lookup itself takes locks
  Caller caller = caller_at(return_address);
  if (caller == Caller::standard_header) caller = caller_around(return_address);
  return caller == Caller::user;
}

Access access_to_locks(const Fiber& fiber) { return this_rank::access_to("locks", std::to_string(fiber.rank), true); }

bool is_for_the_user(void* return_address) {
  constexpr std::size_t kFrames = 48;
  const NativeScope looking;
  std::array<void*, kFrames> stack;
  const auto end = stack.begin() + CallSite::capture_to(stack);
  const auto begin = std::find(stack.begin(), end, return_address);
  const auto outside = std::find_if(begin, end, [](void* at) {
    const Caller caller = caller_at(at);
    return caller == Caller::user || (caller == Caller::library && !in_foreign_library(at));
  });
  return outside != end && caller_at(*outside) == Caller::user;
}

void preempt_file_call(void* return_address, const char* path) {
  make_file_call(return_address, [path] { return access_to_path(path); });
}

void preempt_file_call(void* return_address, int file) {
  make_file_call(return_address, [file] { return access_to_file(file); });
}

bool may_be_shared(int file) noexcept {
  const Fiber* const fiber = current_fiber();
  if (fiber == nullptr || !notes_file_calls(*fiber) || file <= STDERR_FILENO) return false;
  struct stat found;
  return ::fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

}  // namespace rehearse::exec::interpose
