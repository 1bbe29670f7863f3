// SPDX-License-Identifier: BSD-3-Clause
// Calls that look at or change files by name: none of them blocks, and each may meet what another rank does to the same
// name. Where worlds try that, others may run first.
#include <array>
#include <cstdarg>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/interpose/real.h"
#include "exec/interpose/sync/preempt.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

int path_open(const char* path, int flags, ...) REHEARSE_INTERPOSES("open");
int path_open64(const char* path, int flags, ...) REHEARSE_INTERPOSES("open64");
int path_openat(int folder, const char* path, int flags, ...) REHEARSE_INTERPOSES("openat");
FILE* path_fopen(const char* path, const char* mode) REHEARSE_INTERPOSES("fopen");
FILE* path_fopen64(const char* path, const char* mode) REHEARSE_INTERPOSES("fopen64");
int path_stat(const char* path, struct stat* found) REHEARSE_INTERPOSES("stat");
int path_lstat(const char* path, struct stat* found) REHEARSE_INTERPOSES("lstat");
int path_access(const char* path, int mode) REHEARSE_INTERPOSES("access");
int path_rename(const char* from, const char* to) REHEARSE_INTERPOSES("rename");
int path_link(const char* from, const char* to) REHEARSE_INTERPOSES("link");
int path_symlink(const char* from, const char* to) REHEARSE_INTERPOSES("symlink");
int path_unlink(const char* path) REHEARSE_INTERPOSES("unlink");
int path_unlinkat(int folder, const char* path, int flags) REHEARSE_INTERPOSES("unlinkat");
int path_remove(const char* path) REHEARSE_INTERPOSES("remove");
int path_mkdir(const char* path, mode_t mode) REHEARSE_INTERPOSES("mkdir");
int path_rmdir(const char* path) REHEARSE_INTERPOSES("rmdir");

namespace {

constinit Real<int (*)(const char*, int, mode_t)> real_open("open");
constinit Real<int (*)(const char*, int, mode_t)> real_open64("open64");
constinit Real<int (*)(int, const char*, int, mode_t)> real_openat("openat");
constinit Real<FILE* (*)(const char*, const char*)> real_fopen("fopen");
constinit Real<FILE* (*)(const char*, const char*)> real_fopen64("fopen64");
constinit Real<int (*)(const char*, struct stat*)> real_stat("stat");
constinit Real<int (*)(const char*, struct stat*)> real_lstat("lstat");
constinit Real<int (*)(const char*, int)> real_access("access");
constinit Real<int (*)(const char*, const char*)> real_rename("rename");
constinit Real<int (*)(const char*, const char*)> real_link("link");
constinit Real<int (*)(const char*, const char*)> real_symlink("symlink");
constinit Real<int (*)(const char*)> real_unlink("unlink");
constinit Real<int (*)(int, const char*, int)> real_unlinkat("unlinkat");
constinit Real<int (*)(const char*)> real_remove("remove");
constinit Real<int (*)(const char*, mode_t)> real_mkdir("mkdir");
constinit Real<int (*)(const char*)> real_rmdir("rmdir");

// The permissions behind `flags`, where there are any: reading them where there are none gives a number that nobody
// uses.
mode_t mode_behind(va_list arguments, int flags) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

int path_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_behind(arguments, flags);
  va_end(arguments);
  preempt_file_call(__builtin_return_address(0));
  return real_open(path, flags, mode);
}

int path_open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_behind(arguments, flags);
  va_end(arguments);
  preempt_file_call(__builtin_return_address(0));
  return real_open64(path, flags, mode);
}

int path_openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_behind(arguments, flags);
  va_end(arguments);
  preempt_file_call(__builtin_return_address(0));
  return real_openat(folder, path, flags, mode);
}

FILE* path_fopen(const char* path, const char* mode) {
  preempt_file_call(__builtin_return_address(0));
  return real_fopen(path, mode);
}

FILE* path_fopen64(const char* path, const char* mode) {
  preempt_file_call(__builtin_return_address(0));
  return real_fopen64(path, mode);
}

int path_stat(const char* path, struct stat* found) {
  preempt_file_call(__builtin_return_address(0));
  return real_stat(path, found);
}

int path_lstat(const char* path, struct stat* found) {
  preempt_file_call(__builtin_return_address(0));
  return real_lstat(path, found);
}

int path_access(const char* path, int mode) {
  preempt_file_call(__builtin_return_address(0));
  return real_access(path, mode);
}

int path_rename(const char* from, const char* to) {
  preempt_file_call(__builtin_return_address(0));
  return real_rename(from, to);
}

int path_link(const char* from, const char* to) {
  preempt_file_call(__builtin_return_address(0));
  return real_link(from, to);
}

int path_symlink(const char* from, const char* to) {
  preempt_file_call(__builtin_return_address(0));
  return real_symlink(from, to);
}

int path_unlink(const char* path) {
  preempt_file_call(__builtin_return_address(0));
  return real_unlink(path);
}

int path_unlinkat(int folder, const char* path, int flags) {
  preempt_file_call(__builtin_return_address(0));
  return real_unlinkat(folder, path, flags);
}

int path_remove(const char* path) {
  preempt_file_call(__builtin_return_address(0));
  return real_remove(path);
}

int path_mkdir(const char* path, mode_t mode) {
  preempt_file_call(__builtin_return_address(0));
  return real_mkdir(path, mode);
}

int path_rmdir(const char* path) {
  preempt_file_call(__builtin_return_address(0));
  return real_rmdir(path);
}

std::span<const Interposed> path_functions() {
  static const std::array functions = {
      Interposed{"open", reinterpret_cast<const void*>(path_open)},
      Interposed{"open64", reinterpret_cast<const void*>(path_open64)},
      Interposed{"openat", reinterpret_cast<const void*>(path_openat)},
      Interposed{"fopen", reinterpret_cast<const void*>(path_fopen)},
      Interposed{"fopen64", reinterpret_cast<const void*>(path_fopen64)},
      Interposed{"stat", reinterpret_cast<const void*>(path_stat)},
      Interposed{"lstat", reinterpret_cast<const void*>(path_lstat)},
      Interposed{"access", reinterpret_cast<const void*>(path_access)},
      Interposed{"rename", reinterpret_cast<const void*>(path_rename)},
      Interposed{"link", reinterpret_cast<const void*>(path_link)},
      Interposed{"symlink", reinterpret_cast<const void*>(path_symlink)},
      Interposed{"unlink", reinterpret_cast<const void*>(path_unlink)},
      Interposed{"unlinkat", reinterpret_cast<const void*>(path_unlinkat)},
      Interposed{"remove", reinterpret_cast<const void*>(path_remove)},
      Interposed{"mkdir", reinterpret_cast<const void*>(path_mkdir)},
      Interposed{"rmdir", reinterpret_cast<const void*>(path_rmdir)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
