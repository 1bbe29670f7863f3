// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/early_end.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace rehearse {
namespace {

std::atomic<TellEarlyEnd> g_tell_early_end = nullptr;

}  // namespace

void tell_early_end(TellEarlyEnd tell) noexcept { g_tell_early_end = tell; }

void end_early(const EarlyEnd& end) {
  if (const auto tell = g_tell_early_end.load()) tell(end);
  std::fprintf(stderr, "%s; rank %d %s, and its process ends here, without a report\n", end.headline.c_str(), end.rank,
               end.doing.c_str());
  // Not _exit(), which in a rank fails only that rank.
  for (;;) ::syscall(SYS_exit_group, exit_code(end.verdict));
}

}  // namespace rehearse
