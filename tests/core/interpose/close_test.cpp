// SPDX-License-Identifier: BSD-3-Clause
// A program may close files that it did not open, for example with closefrom(). The run's own files stay open all the
// same.
#include <rehearse_internal/exec/kept_files.h>

#include <cerrno>
#include <functional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rehearse::exec::test {
namespace {

bool is_open(int file) { return fcntl(file, F_GETFD) >= 0; }

// Two files of the program, with one of the run's own files between them.
class KeptFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int file : {kBefore, kKept, kAfter}) ASSERT_EQ(::dup2(STDERR_FILENO, file), file);
    keep_open(kKept);
  }
  void TearDown() override {
    stop_keeping(kKept);
    for (const int file : {kBefore, kKept, kAfter}) ::close(file);
  }

  static constexpr int kBefore = 200, kKept = 201, kAfter = 202;
};

TEST_F(KeptFiles, EachWayToCloseAll_LeavesThem) {
  const std::function<void()> ways[] = {
      [] {
        for (int file = kBefore; file <= kAfter; ++file) ::close(file);
      },
      [] {
        for (int file = kBefore; file <= kAfter; ++file) ::syscall(SYS_close, file);
      },
      [] { EXPECT_EQ(::close_range(kBefore, kAfter, 0), 0); },
      [] { EXPECT_EQ(::syscall(SYS_close_range, kBefore, ~0U, 0), 0); },
      [] { ::closefrom(kBefore); },
  };
  for (const auto& close_all : ways) {
    SCOPED_TRACE(&close_all - ways);
    for (const int file : {kBefore, kAfter}) ASSERT_EQ(::dup2(STDERR_FILENO, file), file);
    close_all();
    EXPECT_FALSE(is_open(kBefore));
    EXPECT_TRUE(is_open(kKept));
    EXPECT_FALSE(is_open(kAfter));
  }
}

TEST_F(KeptFiles, Close_SaysThatTheyAreNotOpen) {
  EXPECT_EQ(::close(kKept), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::close(kBefore), 0);
}

TEST_F(KeptFiles, OtherFiles_DoNotTakeTheirPlace) {
  for (const auto& copy : {+[] { return ::dup2(kBefore, kKept); }, +[] { return ::dup3(kBefore, kKept, O_CLOEXEC); },
                           +[] { return static_cast<int>(::syscall(SYS_dup2, kBefore, kKept)); }}) {
    EXPECT_EQ(copy(), -1);
    EXPECT_EQ(errno, EBUSY);
  }
  EXPECT_EQ(::dup2(kKept, kKept), kKept);
  EXPECT_EQ(::dup2(kKept, kAfter), kAfter);
}

TEST_F(KeptFiles, TheirOwner_ClosesThem) {
  stop_keeping(kKept);
  EXPECT_EQ(::close(kKept), 0);
}

TEST_F(KeptFiles, ForkedProcess_HasItsOwn) {
  const pid_t child = fork();
  if (child == 0) {
    const bool closed = ::close(kKept) == 0;
    keep_open(kAfter);
    _exit(closed && ::close(kAfter) != 0 && !is_kept_open(kKept) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_kept_open(kKept));
}

}  // namespace
}  // namespace rehearse::exec::test
