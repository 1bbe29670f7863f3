// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/input_file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rehearse::sim {
namespace {

// Enough bytes to recognise the kind of file.
constexpr std::size_t kBeginning = 64;

class Input {
 public:
  explicit Input(const std::filesystem::path& file) : file_(file) {
    // Without O_NONBLOCK, open() waits for a pipe's writer.
    fd_ = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd_ < 0) fail(errno);
    ::fcntl(fd_, F_SETFL, 0);
    if (::fstat(fd_, &info_) == 0) return;
    const int error = errno;
    ::close(fd_);  // no destructor follows
    fail(error);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() { ::close(fd_); }

  // Appends the next bytes; false at the end.
  bool read(std::string& bytes) {
    const ssize_t got = ::read(fd_, chunk_.data(), chunk_.size());
    if (got < 0 && errno == EINTR) return true;
    if (got < 0) fail(errno);
    bytes.append(chunk_.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

  bool is_pipe() const { return S_ISFIFO(info_.st_mode); }
  // The size as far as it is known in advance: 0 for a pipe or a device.
  std::size_t size() const { return S_ISREG(info_.st_mode) ? static_cast<std::size_t>(info_.st_size) : 0; }

 private:
  [[noreturn]] void fail(int error) const {
    throw InputError(fmt::format("{}: cannot be read: {}", file_.string(), std::generic_category().message(error)));
  }

  const std::filesystem::path& file_;
  int fd_;
  struct stat info_{};
  std::array<char, std::size_t{64} << 10> chunk_;
};

}  // namespace

std::string read_input(const std::filesystem::path& file, std::string_view what, const BytesMost& bytes_most) {
  Input input(file);
  std::string bytes;
  bool more = true;
  while (more && bytes.size() < kBeginning) more = input.read(bytes);
  if (bytes.empty() && input.is_pipe()) {
    throw InputError(fmt::format("{}: cannot be read: it is a pipe that nobody writes to", file.string()));
  }
  const std::size_t most = bytes_most(bytes);
  if (most == 0) return bytes;
  const auto too_large = [&] { return std::max(bytes.size(), input.size()) > most; };
  while (more && !too_large()) more = input.read(bytes);
  if (too_large()) {
    throw InputError(fmt::format("{}: is larger than {} MiB, which no {} is", file.string(), most >> 20, what));
  }
  return bytes;
}

}  // namespace rehearse::sim
