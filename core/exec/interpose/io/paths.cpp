// SPDX-License-Identifier: BSD-3-Clause
// Calls that examine or change files by name. Except for opening a FIFO, none of them waits for another rank. But
// another rank may change the same name at any time. Therefore, in worlds with ExecutorOptions::preempt, these calls
// may switch to other ranks.
#include <array>
#include <cstdarg>
#include <cstdio>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/interpose/real.h"
#include "exec/interpose/sync/preempt.h"
#include "exec/interpose/world_state.h"

// Defines a call with a fixed list of parameters: path_<name>() becomes the process's <name>(). `touched`: the
// parameter that names the file. The macro's last arguments are what it passes to the real function.
#define REHEARSE_PATH_CALL(result, name, touched, parameters, ...) \
  result path_##name parameters REHEARSE_INTERPOSES(#name);        \
  namespace {                                                      \
  constinit Real<result(*) parameters> real_##name(#name);         \
  }                                                                \
  result path_##name parameters {                                  \
    preempt_file_call(__builtin_return_address(0), touched);       \
    return real_##name(__VA_ARGS__);                               \
  }

namespace rehearse::exec::interpose {

REHEARSE_PATH_CALL(FILE*, fopen, path, (const char* path, const char* mode), path, mode)
REHEARSE_PATH_CALL(FILE*, fopen64, path, (const char* path, const char* mode), path, mode)
REHEARSE_PATH_CALL(DIR*, opendir, path, (const char* path), path)
REHEARSE_PATH_CALL(int, stat, path, (const char* path, struct stat* found), path, found)
REHEARSE_PATH_CALL(int, lstat, path, (const char* path, struct stat* found), path, found)
REHEARSE_PATH_CALL(int, stat64, path, (const char* path, struct stat64* found), path, found)
REHEARSE_PATH_CALL(int, lstat64, path, (const char* path, struct stat64* found), path, found)
REHEARSE_PATH_CALL(int, fstatat, path, (int folder, const char* path, struct stat* found, int flags), folder, path,
                   found, flags)
REHEARSE_PATH_CALL(int, fstatat64, path, (int folder, const char* path, struct stat64* found, int flags), folder, path,
                   found, flags)
REHEARSE_PATH_CALL(int, access, path, (const char* path, int mode), path, mode)
REHEARSE_PATH_CALL(int, rename, from, (const char* from, const char* to), from, to)
REHEARSE_PATH_CALL(int, link, from, (const char* from, const char* to), from, to)
REHEARSE_PATH_CALL(int, symlink, from, (const char* from, const char* to), from, to)
REHEARSE_PATH_CALL(int, unlink, path, (const char* path), path)
REHEARSE_PATH_CALL(int, unlinkat, path, (int folder, const char* path, int flags), folder, path, flags)
REHEARSE_PATH_CALL(int, remove, path, (const char* path), path)
REHEARSE_PATH_CALL(int, truncate, path, (const char* path, off_t bytes), path, bytes)
REHEARSE_PATH_CALL(int, mkdir, path, (const char* path, mode_t mode), path, mode)
REHEARSE_PATH_CALL(int, rmdir, path, (const char* path), path)

// stat() and lstat() before glibc 2.33. LibTorch contains a copy of the C++ library's file system code that was built
// against these, and std::filesystem::exists() of a program uses that copy.
REHEARSE_PATH_CALL(int, __xstat, path, (int version, const char* path, struct stat* found), version, path, found)
REHEARSE_PATH_CALL(int, __lxstat, path, (int version, const char* path, struct stat* found), version, path, found)
REHEARSE_PATH_CALL(int, __xstat64, path, (int version, const char* path, struct stat64* found), version, path, found)
REHEARSE_PATH_CALL(int, __lxstat64, path, (int version, const char* path, struct stat64* found), version, path, found)

int path_open(const char* path, int flags, ...) REHEARSE_INTERPOSES("open");
int path_open64(const char* path, int flags, ...) REHEARSE_INTERPOSES("open64");
int path_openat(int folder, const char* path, int flags, ...) REHEARSE_INTERPOSES("openat");

namespace {

constinit Real<int (*)(const char*, int, mode_t)> real_open("open");
constinit Real<int (*)(const char*, int, mode_t)> real_open64("open64");
constinit Real<int (*)(int, const char*, int, mode_t)> real_openat("openat");

// The permissions after `flags`, if the caller passed them.
mode_t mode_behind(va_list arguments, int flags) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

int path_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_behind(arguments, flags);
  va_end(arguments);
  preempt_file_call(__builtin_return_address(0), path);
  return real_open(path, flags, mode);
}

int path_open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_behind(arguments, flags);
  va_end(arguments);
  preempt_file_call(__builtin_return_address(0), path);
  return real_open64(path, flags, mode);
}

int path_openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_behind(arguments, flags);
  va_end(arguments);
  preempt_file_call(__builtin_return_address(0), path);
  return real_openat(folder, path, flags, mode);
}

std::span<const Interposed> path_functions() {
#define REHEARSE_PATH_ROW(call) \
  Interposed { #call, reinterpret_cast<const void*>(path_##call) }
#define REHEARSE_OLD_PATH_ROW(call) \
  Interposed { .name = #call, .ours = reinterpret_cast<const void*>(path_##call), .of_old_libraries = true }
  static const std::array functions = {
      REHEARSE_PATH_ROW(open),          REHEARSE_PATH_ROW(open64),         REHEARSE_PATH_ROW(openat),
      REHEARSE_PATH_ROW(fopen),         REHEARSE_PATH_ROW(fopen64),        REHEARSE_PATH_ROW(opendir),
      REHEARSE_PATH_ROW(stat),          REHEARSE_PATH_ROW(lstat),          REHEARSE_PATH_ROW(stat64),
      REHEARSE_PATH_ROW(lstat64),       REHEARSE_PATH_ROW(fstatat),        REHEARSE_PATH_ROW(fstatat64),
      REHEARSE_PATH_ROW(access),        REHEARSE_PATH_ROW(rename),         REHEARSE_PATH_ROW(link),
      REHEARSE_PATH_ROW(symlink),       REHEARSE_PATH_ROW(unlink),         REHEARSE_PATH_ROW(unlinkat),
      REHEARSE_PATH_ROW(remove),        REHEARSE_PATH_ROW(truncate),       REHEARSE_PATH_ROW(mkdir),
      REHEARSE_PATH_ROW(rmdir),         REHEARSE_OLD_PATH_ROW(__xstat),    REHEARSE_OLD_PATH_ROW(__lxstat),
      REHEARSE_OLD_PATH_ROW(__xstat64), REHEARSE_OLD_PATH_ROW(__lxstat64),
  };
#undef REHEARSE_PATH_ROW
#undef REHEARSE_OLD_PATH_ROW
  return functions;
}

}  // namespace rehearse::exec::interpose

#undef REHEARSE_PATH_CALL
