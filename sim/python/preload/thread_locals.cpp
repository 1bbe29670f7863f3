// SPDX-License-Identifier: BSD-3-Clause
// Thread-local variables of Python's extension modules: each fiber has its own, as each thread would. Code of a library
// that a process has loaded asks __tls_get_addr() for their address.
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include <link.h>

#include <rehearse_internal/exec/fiber_local.h>

#include "exec/fiber/fiber.h"
#include "exec/interpose/real.h"

namespace rehearse::python {

// A variable as the loader names it: the number of its library, and its offset in the library's block.
struct ThreadLocal {
  unsigned long library, offset;
};

void* address_of(ThreadLocal* variable) REHEARSE_INTERPOSES("__tls_get_addr");

namespace {

constinit exec::interpose::Real<void* (*)(ThreadLocal*)> real_address_of("__tls_get_addr");

constexpr std::size_t kLibrariesMost = 4096;  // others keep to threads

enum class Owner : unsigned char { unknown, thread, fiber };

// The block of a library as it is in a new thread.
struct Image {
  const char* begin = nullptr;
  std::size_t filled = 0, size = 0, alignment = 1;
};

std::atomic<Owner> g_owners[kLibrariesMost];
Image g_images[kLibrariesMost];

bool is_extension(std::string_view path) noexcept {
  const auto name = path.substr(path.rfind('/') + 1);
  return name.find(".cpython-3") != name.npos || name.ends_with(".abi3.so") || name == "libtorch_python.so";
}

Image image_in(const dl_phdr_info& library) noexcept {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const auto& segment = library.dlpi_phdr[i];
    if (segment.p_type != PT_TLS) continue;
    return {reinterpret_cast<const char*>(library.dlpi_addr + segment.p_vaddr), segment.p_filesz, segment.p_memsz,
            segment.p_align};
  }
  return {};
}

Owner find_owner(unsigned long library) noexcept {
  struct Wanted {
    unsigned long library;
    Owner owner = Owner::thread;
  } wanted{library};
  dl_iterate_phdr(
      [](dl_phdr_info* each, std::size_t, void* data) {
        auto& found = *static_cast<Wanted*>(data);
        if (each->dlpi_tls_modid != found.library) return 0;
        g_images[found.library] = image_in(*each);
        if (is_extension(each->dlpi_name)) found.owner = Owner::fiber;
        return 1;
      },
      &wanted);
  g_owners[library] = wanted.owner;
  return wanted.owner;
}

// The blocks of one fiber. They are never freed, because destructors of variables run after all else of the fiber.
struct Blocks {
  struct Block {
    unsigned long library;
    char* begin;
  };
  std::vector<Block> all;
};

const exec::FiberLocal<Blocks>& blocks() {
  static const exec::FiberLocal<Blocks> of_fibers;
  return of_fibers;
}

char* block_of(unsigned long library) {
  auto& all = blocks().get().all;
  for (const auto& block : all) {
    if (block.library == library) return block.begin;
  }
  const Image& image = g_images[library];
  auto* const begin = static_cast<char*>(::operator new(image.size, std::align_val_t(image.alignment)));
  std::memcpy(begin, image.begin, image.filled);
  std::memset(begin + image.filled, 0, image.size - image.filled);
  all.push_back({library, begin});
  return begin;
}

}  // namespace

void* address_of(ThreadLocal* variable) {
  if (exec::fiber_of_thread() == nullptr || variable->library >= kLibrariesMost) return real_address_of(variable);
  auto owner = g_owners[variable->library].load(std::memory_order_relaxed);
  if (owner == Owner::unknown) [[unlikely]]
    owner = find_owner(variable->library);
  return owner == Owner::fiber ? block_of(variable->library) + variable->offset : real_address_of(variable);
}

}  // namespace rehearse::python
