// SPDX-License-Identifier: BSD-3-Clause
// If an executable links rehearse::exec, its calls reach our functions, and require_installed() does not throw.
#include <dlfcn.h>

#include <gtest/gtest.h>

#include "exec/interpose/interpose.h"

namespace rehearse::exec::interpose {
namespace {

TEST(Installed, ThisExecutable_IsFine) { EXPECT_NO_THROW(require_installed()); }

// Looks functions up by name, as the loader resolves another library's reference. They must be in this executable, not
// in libc.
TEST(Installed, Functions_AreExported) {
  Dl_info here{}, found{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&require_installed), &here), 0);
  for (const char* name : {"pthread_cond_wait", "pthread_mutex_lock", "pthread_create", "clock_gettime", "nanosleep",
                           "__cxa_guard_acquire", "pthread_once", "sem_wait", "epoll_wait", "syscall"}) {
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &found), 0) << name;
    EXPECT_EQ(found.dli_fbase, here.dli_fbase) << name;
  }
}

}  // namespace
}  // namespace rehearse::exec::interpose
