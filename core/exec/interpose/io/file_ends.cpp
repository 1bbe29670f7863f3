// SPDX-License-Identifier: BSD-3-Clause
// Finds out what is at the other end of a pipe or socket: this process (so perhaps another rank), or another process.
#include "file_ends.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/interpose/real.h"

namespace rehearse::exec::interpose {
namespace {

constinit Real<int (*)(pollfd*, nfds_t, int)> real_poll_of_ends("poll");

std::vector<int> open_files() {
  std::vector<int> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    files.push_back(std::stoi(entry.path().filename()));
  }
  return files;
}

template <class Test>
bool any_other_file(int file, const Test& test) {
  const auto files = open_files();
  return std::ranges::any_of(files, [&](int other) { return other != file && test(other); });
}

bool is_same_file(int other, const struct stat& file) noexcept {
  struct stat found{};
  return ::fstat(other, &found) == 0 && found.st_dev == file.st_dev && found.st_ino == file.st_ino;
}

bool has_access(int file, int access) noexcept {
  const int mode = ::fcntl(file, F_GETFL) & O_ACCMODE;
  return mode == access || mode == O_RDWR;
}

bool has_other_end(int pipe, short events) {
  struct stat status{};
  if (::fstat(pipe, &status) != 0) return false;
  const int access = (events & POLLIN) != 0 ? O_WRONLY : O_RDONLY;
  if (has_access(pipe, access)) return true;  // opened for reading and writing
  return any_other_file(pipe, [&](int other) { return is_same_file(other, status) && has_access(other, access); });
}

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_storage);
  bool operator==(const Address& other) const noexcept {
    return bytes == other.bytes && std::memcmp(&storage, &other.storage, bytes) == 0;
  }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

int socket_option(int socket, int option) noexcept {
  int value = 0;
  socklen_t bytes = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &bytes) == 0 ? value : 0;
}

bool is_unix_peer_here(int socket) noexcept {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid == ::getpid();
}

bool is_peer_here(int socket) {
  if (socket_option(socket, SO_DOMAIN) == AF_UNIX) return is_unix_peer_here(socket);
  Address peer;
  if (::getpeername(socket, peer.get(), &peer.bytes) != 0) return false;
  return any_other_file(socket, [&](int other) {
    Address own;
    return ::getsockname(other, own.get(), &own.bytes) == 0 && own == peer;
  });
}

}  // namespace

FileKind kind_of_blocking(int file) noexcept {
  struct stat status{};
  if (::fstat(file, &status) != 0) return FileKind::other;
  const bool pipe = S_ISFIFO(status.st_mode);
  if (!pipe && !S_ISSOCK(status.st_mode)) return FileKind::other;
  if ((::fcntl(file, F_GETFL) & O_NONBLOCK) != 0) return FileKind::other;
  return pipe ? FileKind::pipe : FileKind::socket;
}

bool is_ready(int file, short events) noexcept {
  pollfd entry{file, events, 0};
  if (real_poll_of_ends(&entry, 1, 0) != 0) return true;
  // Data on the loopback may need another processor's interrupt to arrive.
  constexpr int kLoopbackMilliseconds = 20;
  const int domain = socket_option(file, SO_DOMAIN);
  return (domain == AF_INET || domain == AF_INET6) && real_poll_of_ends(&entry, 1, kLoopbackMilliseconds) != 0;
}

bool ends_in_this_process(int file, FileKind kind, short events) {
  if (kind == FileKind::pipe) return has_other_end(file, events);
  return socket_option(file, SO_ACCEPTCONN) != 0 || is_peer_here(file);
}

bool is_locked_by_this_process(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return false;
  std::ifstream locks("/proc/locks");
  // If the system lists no locks, assume that any descriptor of this process for the file may hold the lock.
  if (!locks) return any_other_file(file, [&](int other) { return is_same_file(other, status); });
  // "1: FLOCK ADVISORY WRITE 4711 fd:01:131 0 EOF"; lines of waiters have an additional word, "->".
  std::string line, number, kind, mode, access, inode;
  for (pid_t holder = 0; std::getline(locks, line);) {
    std::istringstream words(line);
    words >> number >> kind >> mode >> access >> holder >> inode;
    if (kind != "FLOCK" || !inode.ends_with(":" + std::to_string(status.st_ino))) continue;
    if (holder == ::getpid()) return true;
  }
  return false;
}

}  // namespace rehearse::exec::interpose
