// SPDX-License-Identifier: BSD-3-Clause
#include "job/module_image.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <rehearse/job/program_module.h>
#include <rehearse_internal/exec/address_alias.h>
#include <rehearse_internal/exec/thread_exit_keeper.h>

extern "C" void __cxa_finalize(void* library);

namespace rehearse {
namespace {

// The list only grows.
constinit std::atomic<ModuleImage*> g_images = nullptr;

std::byte* at(ElfW(Addr) address) { return reinterpret_cast<std::byte*>(address); }

// The loader's data about the object that contains `address`.
struct Sought {
  const std::byte* address;
  ElfW(Addr) base = 0;
  std::vector<ElfW(Phdr)> headers;
  void* thread_locals = nullptr;  // the calling thread's; null: not allocated yet

  ElfW(Addr) begin() const {
    auto begin = ~ElfW(Addr){0};
    for (const auto& header : headers) begin = header.p_type == PT_LOAD ? std::min(begin, header.p_vaddr) : begin;
    return base + begin;
  }
  ElfW(Addr) end() const {
    ElfW(Addr) end = 0;
    for (const auto& header : headers) {
      if (header.p_type == PT_LOAD) end = std::max(end, header.p_vaddr + header.p_memsz);
    }
    return base + end;
  }
  bool is_found() const { return !headers.empty() && address >= at(begin()) && address < at(end()); }
};

Sought look_up(const void* address) {
  Sought sought{static_cast<const std::byte*>(address), 0, {}, nullptr};
  const auto visit = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& found = *static_cast<Sought*>(data);
    found.base = info->dlpi_addr;
    found.headers.assign(info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum);
    found.thread_locals = info->dlpi_tls_data;
    return found.is_found() ? 1 : 0;
  };
  if (dl_iterate_phdr(visit, &sought) == 0) sought.headers.clear();
  return sought;
}

std::string read_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in || bytes.size() < sizeof(ElfW(Ehdr))) throw ModuleError(fmt::format("{}: cannot be read", file));
  return bytes;
}

// Operators belong to the process: a copy would register them again, and LibTorch would end the process.
void refuse_operators(const std::string& file, const std::string& bytes) {
  if (bytes.find("_ZN5torch7LibraryC") == std::string::npos) return;
  throw ModuleError(
      fmt::format("{}: registers operators (TORCH_LIBRARY), which are the process's, and not a rank's: put them into a "
                  "library that the executable links, or build the program without MODULE",
                  file));
}

// The loader maps only the beginning of the file; returns the number of these bytes. Later parts, such as line tables,
// are read from the original file.
std::size_t loaded_bytes(const std::string& bytes) {
  ElfW(Ehdr) head;
  std::memcpy(&head, bytes.data(), sizeof head);
  std::size_t most = 0;
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) header;
    std::memcpy(&header, bytes.data() + head.e_phoff + i * sizeof header, sizeof header);
    if (header.p_type == PT_LOAD) most = std::max<std::size_t>(most, header.p_offset + header.p_filesz);
  }
  return std::min(most, bytes.size());
}

// A path by which no image was loaded yet. The loader treats files with equal paths or equal inodes as one file. The
// inodes differ, but file descriptors are reused, so the path also encodes a counter.
std::string path_of(int memory) {
  static std::atomic<unsigned> loaded = 0;
  std::string path = "/proc/self/fd/";
  for (auto rest = ++loaded; rest > 0; rest /= 2) path += rest % 2 == 0 ? "./" : ".//";
  return path + std::to_string(memory);
}

ModuleImage& opened(const std::string& file, const char* path) {
  void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw ModuleError(fmt::format("{}: cannot be loaded: {}", file, dlerror()));
  const auto handle = reinterpret_cast<const void* (*)()>(dlsym(opened, "rehearse_module_handle"));
  auto* const image = handle != nullptr ? ModuleImage::with(handle()) : nullptr;
  if (image == nullptr) throw ModuleError(fmt::format("{}: was not built by rehearse_add_program(... MODULE)", file));
  return *image;
}

bool keep_exit(void (*destroy)(void*), void* object, const void* library) noexcept {
  auto* const image = ModuleImage::with(library);
  if (image != nullptr) image->add_thread_exit(destroy, object);
  return image != nullptr;
}

}  // namespace

// A module's first static constructor calls this, while the module's variables still have the values from the file.
extern "C" [[gnu::visibility("default")]] void rehearse_module_loaded(const void* handle) {
  if (ModuleImage::with(handle) == nullptr) new ModuleImage(handle);  // lives as long as the process
}

ModuleImage::ModuleImage(const void* handle) : handle_(handle) {
  locate();
  for (const auto& part : writable_) first_values_.insert(first_values_.end(), part.begin(), part.end());
  exec::thread_exit_keeper = keep_exit;
  auto* head = g_images.load();
  do {
    next_ = head;
  } while (!g_images.compare_exchange_weak(head, this));
}

void ModuleImage::locate() {
  const auto found = look_up(handle_);
  all_ = {at(found.begin()), at(found.end())};
  std::span<std::byte> constant;  // read-only after loading
  const ElfW(Dyn)* dynamic = nullptr;
  for (const auto& header : found.headers) {
    std::byte* const begin = at(found.base + header.p_vaddr);
    if (header.p_type == PT_GNU_RELRO) constant = {begin, header.p_memsz};
    if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (header.p_type == PT_TLS) {
      thread_locals_ = {begin, header.p_filesz};
      thread_locals_bytes_ = header.p_memsz;
    }
  }
  for (const auto& header : found.headers) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
    std::byte* const begin = at(found.base + header.p_vaddr);
    std::byte* const end = begin + header.p_memsz;
    const bool starts_constant = begin <= constant.data() && constant.data() < end;
    // Pages that are only partly read-only stay writable.
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto constant_end = reinterpret_cast<std::uintptr_t>(constant.data() + constant.size()) & ~(page - 1);
    writable_.emplace_back(starts_constant ? at(constant_end) : begin, end);
  }
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_INIT_ARRAY) {
      const auto* const first = reinterpret_cast<const std::uintptr_t*>(at(found.base + dynamic->d_un.d_ptr));
      constructors_ = {first, constructors_.size()};
    }
    if (dynamic->d_tag == DT_INIT_ARRAYSZ) {
      constructors_ = {constructors_.data(), dynamic->d_un.d_val / sizeof(std::uintptr_t)};
    }
  }
}

ModuleImage& ModuleImage::load(const std::string& file) {
  refuse_operators(file, read_file(file));
  return opened(file, file.c_str());
}

ModuleImage& ModuleImage::load_copy(const std::string& file, const ModuleImage& original) {
  const auto bytes = read_file(file);
  const int memory = memfd_create("rehearse_module", MFD_CLOEXEC);
  if (memory < 0) throw ModuleError(fmt::format("{}: no memory for a copy: {}", file, std::strerror(errno)));
  const auto wanted = loaded_bytes(bytes);
  for (std::size_t done = 0; done < wanted;) {
    const auto written = ::write(memory, bytes.data() + done, wanted - done);
    if (written <= 0) {
      ::close(memory);
      throw ModuleError(fmt::format("{}: no memory for a copy: {}", file, std::strerror(errno)));
    }
    done += static_cast<std::size_t>(written);
  }
  ModuleImage& image = opened(file, path_of(memory).c_str());
  ::close(memory);
  exec::add_address_alias(image.all_, original.all_.data());
  return image;
}

ModuleImage* ModuleImage::with(const void* address) noexcept {
  const auto* const sought = static_cast<const std::byte*>(address);
  for (auto* image = g_images.load(std::memory_order_acquire); image != nullptr;
       image = const_cast<ModuleImage*>(image->next_)) {
    if (sought >= image->all_.data() && sought < image->all_.data() + image->all_.size()) return image;
  }
  return nullptr;
}

void ModuleImage::start_again() {
  const std::byte* value = first_values_.data();
  for (const auto& part : writable_) {
    std::memcpy(part.data(), value, part.size());
    value += part.size();
  }
  if (auto* const own = static_cast<std::byte*>(look_up(handle_).thread_locals); own != nullptr) {
    std::memcpy(own, thread_locals_.data(), thread_locals_.size());
    std::memset(own + thread_locals_.size(), 0, thread_locals_bytes_ - thread_locals_.size());
  }
  programs.clear();
  for (const auto constructor : constructors_) {
    if (constructor != 0 && constructor != ~std::uintptr_t{0}) {
      reinterpret_cast<void (*)(int, char**, char**)>(constructor)(0, nullptr, environ);
    }
  }
}

void ModuleImage::finish() noexcept {
  while (!thread_exits_.empty()) {
    const auto last = thread_exits_.back();
    thread_exits_.pop_back();
    last.destroy(last.object);
  }
  __cxa_finalize(const_cast<void*>(handle_));
}

}  // namespace rehearse
