// SPDX-License-Identifier: BSD-3-Clause
// Pipes, sockets and file locks between ranks. If a call would block in the kernel until another rank makes a call, it
// suspends its rank instead. Calls on all other files go to the kernel; writes first pass the world's FileInterceptor.
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/interpose/real.h"
#include "exec/interpose/sync/preempt.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/polling.h"
#include "file_ends.h"
#include "file_writes.h"

namespace rehearse::exec::interpose {

ssize_t file_read(int file, void* data, size_t bytes) REHEARSE_INTERPOSES("read");
ssize_t file_read_checked(int file, void* data, size_t bytes, size_t room) REHEARSE_INTERPOSES("__read_chk");
ssize_t file_write(int file, const void* data, size_t bytes) REHEARSE_INTERPOSES("write");
ssize_t file_recv(int file, void* data, size_t bytes, int flags) REHEARSE_INTERPOSES("recv");
ssize_t file_recv_checked(int file, void* data, size_t bytes, size_t room, int flags) REHEARSE_INTERPOSES("__recv_chk");
ssize_t file_send(int file, const void* data, size_t bytes, int flags) REHEARSE_INTERPOSES("send");
int file_accept(int file, sockaddr* address, socklen_t* bytes) REHEARSE_INTERPOSES("accept");
int file_accept4(int file, sockaddr* address, socklen_t* bytes, int flags) REHEARSE_INTERPOSES("accept4");
int file_flock(int file, int operation) REHEARSE_INTERPOSES("flock");

namespace {

constinit Real<ssize_t (*)(int, void*, size_t)> real_read("read");
constinit Real<ssize_t (*)(int, void*, size_t, size_t)> real_read_checked("__read_chk");
constinit Real<ssize_t (*)(int, const void*, size_t)> real_write("write");
constinit Real<ssize_t (*)(int, void*, size_t, int)> real_recv("recv");
constinit Real<ssize_t (*)(int, void*, size_t, size_t, int)> real_recv_checked("__recv_chk");
constinit Real<ssize_t (*)(int, const void*, size_t, int)> real_send("send");
constinit Real<int (*)(int, sockaddr*, socklen_t*)> real_accept("accept");
constinit Real<int (*)(int, sockaddr*, socklen_t*, int)> real_accept4("accept4");
constinit Real<int (*)(int, int)> real_flock("flock");

class FileObserver final : public Observer {
 public:
  FileObserver(const char* call, const char* of, int file) : call_(call), of_(of), file_(file) {}

 private:
  Wait describe() const override {
    return {.waits_on = fmt::format("{} of {} (file descriptor {})", call_, of_, file_), .any_rank = true};
  }

  const char* call_;
  const char* of_;
  int file_;
};

const char* name_of(FileKind kind) { return kind == FileKind::pipe ? "a pipe" : "a socket"; }

// The fiber that may have to wait for another rank in a call on this file, and the kind of the file. The fiber is null
// outside of ranks, for files of FileKind::other, and in a process that a rank has forked.
struct Waiter {
  explicit Waiter(int file) noexcept {
    Fiber* const caller = current_fiber();
    if (caller == nullptr) return;
    kind = kind_of_blocking(file);
    if (kind != FileKind::other && ::getpid() == caller->world->process) fiber = caller;
  }
  Fiber* fiber = nullptr;
  FileKind kind = FileKind::other;
};

class FileWait {
 public:
  FileWait(const Waiter& waiter, int file, short events, const char* call)
      : fiber_(*waiter.fiber),
        file_(file),
        kind_(waiter.kind),
        events_(events),
        observer_(call, name_of(kind_), file) {}

  // True if no rank of this process can make the file ready. Then the call may block in the kernel.
  bool is_for_others() const { return !ends_in_this_process(file_, kind_, events_); }

  // Suspends until the file is ready. Returns at once if is_for_others().
  void until_ready() {
    while (!is_ready(file_, events_)) {
      if (first_ && is_for_others()) return;
      wait_in_kernel(fiber_, observer_, std::exchange(first_, false));
    }
  }

  // Repeats a call until everything is transferred, or the call fails or transfers nothing. `piece` transfers the rest
  // from an offset on, and may fail with EAGAIN.
  template <class Piece>
  ssize_t until_all(size_t bytes, const Piece& piece) {
    size_t done = 0;
    do {
      until_ready();
      const ssize_t moved = piece(done, bytes - done);
      if (moved < 0 && errno == EAGAIN) continue;
      if (moved <= 0) return done > 0 ? static_cast<ssize_t>(done) : moved;
      done += static_cast<size_t>(moved);
      changed();
    } while (done < bytes);
    return static_cast<ssize_t>(done);
  }

  // The file has room or data now: other fibers must check it again.
  void changed() { poll_in_kernel(fiber_); }

 private:
  Fiber& fiber_;
  const int file_;
  const FileKind kind_;
  const short events_;
  const FileObserver observer_;
  bool first_ = true;
};

// `take`: a call that reads from the file.
template <class Take>
auto when_ready(int file, const char* call, const Take& take) {
  const Waiter waiter(file);
  if (waiter.fiber == nullptr) return take();
  FileWait wait(waiter, file, POLLIN, call);
  wait.until_ready();
  const auto result = take();
  const int error = errno;
  wait.changed();
  errno = error;
  return result;
}

ssize_t write_to_pipe(const Waiter& waiter, int file, const void* data, size_t bytes) {
  FileWait wait(waiter, file, POLLOUT, "write()");
  // Up to PIPE_BUF bytes fit if there is any room. Check this first: most pipes are stdout, and its reader has usually
  // made room, so the write needs no wait.
  const bool fits = bytes <= PIPE_BUF && is_ready(file, POLLOUT);
  if (!fits && wait.is_for_others()) return real_write(file, data, bytes);
  return wait.until_all(bytes, [=](size_t from, size_t left) {
    return real_write(file, static_cast<const char*>(data) + from, std::min(left, static_cast<size_t>(PIPE_BUF)));
  });
}

ssize_t send_to_socket(const Waiter& waiter, int file, const void* data, size_t bytes, int flags, const char* call) {
  FileWait wait(waiter, file, POLLOUT, call);
  if (wait.is_for_others()) return real_send(file, data, bytes, flags);
  return wait.until_all(bytes, [=](size_t from, size_t left) {
    return real_send(file, static_cast<const char*>(data) + from, left, flags | MSG_DONTWAIT);
  });
}

ssize_t receive_all(const Waiter& waiter, int file, void* data, size_t bytes, int flags) {
  FileWait wait(waiter, file, POLLIN, "recv()");
  if (wait.is_for_others()) return real_recv(file, data, bytes, flags);
  return wait.until_all(bytes, [=](size_t from, size_t left) {
    return real_recv(file, static_cast<char*>(data) + from, left, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
  });
}

int lock_in_fiber(Fiber& fiber, int file, int operation) {
  const FileObserver observer("flock()", "a file", file);
  for (bool first = true;; first = false) {
    const int result = real_flock(file, operation | LOCK_NB);
    if (result == 0 || errno != EWOULDBLOCK) return result;
    if (first && !is_locked_by_this_process(file)) return real_flock(file, operation);
    wait_in_kernel(fiber, observer, first);
  }
}

}  // namespace

ssize_t file_read(int file, void* data, size_t bytes) {
  if (may_be_shared(file)) preempt_file_call(__builtin_return_address(0), file);
  return when_ready(file, "read()", [=] { return real_read(file, data, bytes); });
}

ssize_t file_read_checked(int file, void* data, size_t bytes, size_t room) {
  if (may_be_shared(file)) preempt_file_call(__builtin_return_address(0), file);
  return when_ready(file, "read()", [=] { return real_read_checked(file, data, bytes, room); });
}

ssize_t file_recv(int file, void* data, size_t bytes, int flags) {
  if ((flags & MSG_DONTWAIT) != 0) return real_recv(file, data, bytes, flags);
  if ((flags & MSG_WAITALL) != 0) {
    if (const Waiter waiter(file); waiter.fiber != nullptr) return receive_all(waiter, file, data, bytes, flags);
  }
  return when_ready(file, "recv()", [=] { return real_recv(file, data, bytes, flags); });
}

ssize_t file_recv_checked(int file, void* data, size_t bytes, size_t room, int flags) {
  if (bytes > room) return real_recv_checked(file, data, bytes, room, flags);  // ends the process
  return file_recv(file, data, bytes, flags);
}

ssize_t file_write(int file, const void* data, size_t bytes) {
  if (may_be_shared(file)) preempt_file_call(__builtin_return_address(0), file);
  const Waiter waiter(file);
  if (waiter.fiber == nullptr) return write_to_file(file, data, bytes);
  if (waiter.kind == FileKind::pipe) return write_to_pipe(waiter, file, data, bytes);
  return send_to_socket(waiter, file, data, bytes, 0, "write()");
}

ssize_t file_send(int file, const void* data, size_t bytes, int flags) {
  if ((flags & MSG_DONTWAIT) != 0) return real_send(file, data, bytes, flags);
  const Waiter waiter(file);
  if (waiter.fiber == nullptr) return real_send(file, data, bytes, flags);
  return send_to_socket(waiter, file, data, bytes, flags, "send()");
}

int file_accept(int file, sockaddr* address, socklen_t* bytes) {
  return when_ready(file, "accept()", [=] { return real_accept(file, address, bytes); });
}

int file_accept4(int file, sockaddr* address, socklen_t* bytes, int flags) {
  return when_ready(file, "accept4()", [=] { return real_accept4(file, address, bytes, flags); });
}

int file_flock(int file, int operation) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr || ::getpid() != fiber->world->process) return real_flock(file, operation);
  if ((operation & (LOCK_NB | LOCK_UN)) == 0) return lock_in_fiber(*fiber, file, operation);
  const int result = real_flock(file, operation);
  if (result == 0) poll_in_kernel(*fiber);
  return result;
}

std::span<const Interposed> file_functions() {
  static const std::array functions = {
      Interposed{"read", reinterpret_cast<const void*>(file_read)},
      Interposed{"__read_chk", reinterpret_cast<const void*>(file_read_checked)},
      Interposed{"write", reinterpret_cast<const void*>(file_write)},
      Interposed{"recv", reinterpret_cast<const void*>(file_recv)},
      Interposed{"__recv_chk", reinterpret_cast<const void*>(file_recv_checked)},
      Interposed{"send", reinterpret_cast<const void*>(file_send)},
      Interposed{"accept", reinterpret_cast<const void*>(file_accept)},
      Interposed{"accept4", reinterpret_cast<const void*>(file_accept4)},
      Interposed{"flock", reinterpret_cast<const void*>(file_flock)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
