// SPDX-License-Identifier: BSD-3-Clause
#include "compile/cache/cache_folder.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rehearse_internal/exec/native_scope.h>
#include <rehearse_internal/hash/fnv1a.h>

namespace rehearse::compiler {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "a compiled graph of Rehearse, format 1\n";
constexpr std::string_view kStored = ".graph", kAside = ".aside";

// The content of a file: the format, the three texts, each after its length, and a hash of all that.
std::string content_of(std::string_view program, std::string_view key, std::string_view text) {
  std::string content(kFormat);
  for (const std::string_view each : {program, key, text}) {
    content += fmt::format("{}\n", each.size());
    content += each;
    content += '\n';
  }
  return content + fmt::format("{:016x}\n", fnv1a(content));
}

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  std::optional<std::string_view> text() {
    const std::size_t end = rest_.find('\n');
    std::size_t length = 0;
    if (end == std::string_view::npos) return std::nullopt;
    const auto [last, error] = std::from_chars(rest_.data(), rest_.data() + end, length);
    if (error != std::errc() || last != rest_.data() + end) return std::nullopt;
    rest_.remove_prefix(end + 1);
    if (length >= rest_.size() || rest_[length] != '\n') return std::nullopt;
    const std::string_view found = rest_.substr(0, length);
    rest_.remove_prefix(length + 1);
    return found;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<std::string> content_of_file(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in || !content) return std::nullopt;
  return std::move(content).str();
}

std::string text_of_error(int error) { return std::error_code(error, std::generic_category()).message(); }

struct File {
  fs::file_time_type time;
  fs::path path;
  std::uint64_t bytes = 0;
};

// The files of this cache. Other processes may remove files meanwhile.
std::vector<File> files_in(const fs::path& folder) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::string extension = each->path().extension().string();
    if (extension != kStored && extension != kAside) continue;
    std::error_code gone;
    const std::uint64_t bytes = each->file_size(gone);
    if (gone) continue;
    const fs::file_time_type time = each->last_write_time(gone);
    if (!gone) files.push_back({time, each->path(), bytes});
  }
  return files;
}

}  // namespace

fs::path CacheFolder::file_of(const std::string& key) const {
  Fnv1a program;
  program.add(program_);
  return folder_ / fmt::format("{:016x}.{:016x}{}", fnv1a(key), program.value(), kStored);
}

CacheFolder::Found CacheFolder::read(const std::string& key) const {
  const exec::NativeScope native;  // the real disk, not that of the simulated job
  const fs::path file = file_of(key);
  std::error_code error;
  if (!fs::exists(file, error)) return {.why_not = "there is no " + file.string()};
  const auto unexpected = [&](const std::string& what) {
    return Found{.why_not = file.string() + " " + what, .is_unexpected = true};
  };
  const std::optional<std::string> content = content_of_file(file);
  if (!content) return unexpected("cannot be read: it must be a file that this user may read");
  if (!content->starts_with(kFormat)) return unexpected("is of another format than this version of Rehearse writes");
  Reader reader(std::string_view(*content).substr(kFormat.size()));
  const auto program = reader.text(), stored_key = reader.text(), text = reader.text();
  if (!program || !stored_key || !text) return unexpected("is damaged: it ends too early");
  const std::string_view whole = std::string_view(*content).substr(0, content->size() - reader.rest().size());
  if (reader.rest() != fmt::format("{:016x}\n", fnv1a(whole))) return unexpected("is damaged: its checksum is another");
  if (*program != program_) return unexpected(fmt::format("is of {}; this is {}", *program, program_));
  if (*stored_key != key) return unexpected("is of another graph, whose key has the same hash");
  return {.stored = std::string(*text)};
}

std::string CacheFolder::write(const std::string& key, const std::string& text) const {
  const exec::NativeScope native;
  const std::string content = content_of(program_, key, text);
  if (content.size() > limit_bytes_) {
    return fmt::format("it takes {} bytes, and CompileOptions::cache_limit_bytes is {}", content.size(), limit_bytes_);
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    return fmt::format("the folder {} cannot be made: {}", folder_.string(), error.message());
  }
  std::string failed = write_aside(file_of(key), content);
  if (failed.empty()) remove_oldest();
  return failed;
}

std::string CacheFolder::write_aside(const fs::path& file, const std::string& content) const {
  static std::atomic<std::uint64_t> written = 0;  // counts the files of all threads
  const fs::path aside = folder_ / fmt::format("{}.{}.{}{}", file.filename().string(), ::getpid(), ++written, kAside);
  const auto failure = [](const fs::path& path, int error) {
    return fmt::format("{} cannot be written: {}", path.string(), text_of_error(error));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(aside.c_str(), "wbx"), &std::fclose);
  if (!out) return failure(aside, errno);
  const bool is_written = std::fwrite(content.data(), 1, content.size(), out.get()) == content.size();
  if (is_written && std::fflush(out.get()) == 0 && std::rename(aside.c_str(), file.c_str()) == 0) return "";
  const int error = errno;
  std::error_code ignored;
  fs::remove(aside, ignored);
  return failure(file, error);
}

void CacheFolder::remove_oldest() const {
  std::vector<File> files = files_in(folder_);
  std::uint64_t bytes = 0;
  for (const File& file : files) bytes += file.bytes;
  if (bytes <= limit_bytes_) return;
  std::ranges::sort(files, [](const File& left, const File& right) {
    return std::tie(left.time, left.path) < std::tie(right.time, right.path);
  });
  for (const File& file : files) {
    if (bytes <= limit_bytes_) return;
    std::error_code error;
    fs::remove(file.path, error);
    bytes -= file.bytes;
  }
}

}  // namespace rehearse::compiler
