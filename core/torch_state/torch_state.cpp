// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/torch_state/torch_state.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include "torch_state/devices/rank_devices.h"
#include "torch_state/fiber_record.h"
#include "torch_state/inter_op_pool.h"
#include "torch_state/tcp_store.h"
#include "torch_state/thread_exit.h"
#include "torch_state/tls/tls_exchange.h"
#include "torch_state/tls/tls_layout.h"

namespace rehearse::torch_state {
namespace {

// Far above the ids of real threads, which count up from one. The ids are the same in every world, because c10d keeps a
// registry for each id.
constexpr std::uint64_t kThreadIdBase = std::uint64_t{1} << 32;

static_assert(sizeof(at::Generator) == sizeof(void*), "the default generator is exchanged as one pointer");

// The beginning of an image; an image of TlsExchange follows.
struct ImageHeader {
  FiberRecord* record;
  void* generator;  // the one pointer in LibTorch's default generator
  std::uint64_t thread_id;
};

bool is_default(const at::RecordFunctionTLS& settings) {
  return settings.tls_record_function_enabled_ && settings.sorted_tls_callbacks_.empty();
}

std::atomic<bool> are_changed{false};

// SplitMix64: neighbouring inputs give unrelated seeds.
std::uint64_t seed_of_rank(std::uint64_t seed, int rank) {
  std::uint64_t x = seed + (static_cast<std::uint64_t>(rank) + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

// The settings of LibTorch that a TorchRankState changes for the whole process while it lives. Only one object may
// exist: the constructor of a second one throws std::logic_error.
class ProcessSettings {
 public:
  explicit ProcessSettings(bool single_threaded_ops);
  ProcessSettings(const ProcessSettings&) = delete;
  ProcessSettings& operator=(const ProcessSettings&) = delete;
  ~ProcessSettings();

 private:
  int threads_before_ = 0;  // 0: not changed
};

ProcessSettings::ProcessSettings(bool single_threaded_ops) {
  if (are_changed.exchange(true)) throw std::logic_error("rehearse: there already is a TorchRankState");
  c10d::set_thread_isolation_mode(true);
  if (!single_threaded_ops) return;
  threads_before_ = at::get_num_threads();
  at::set_num_threads(1);
}

ProcessSettings::~ProcessSettings() {
  if (threads_before_ > 0) at::set_num_threads(threads_before_);
  c10d::set_thread_isolation_mode(false);
  are_changed = false;
}

// The default CPU generator of each rank.
class RankGenerators {
 public:
  // `same_on_all_ranks`: if false, each rank gets its own seed, a function of `seed` and the rank.
  RankGenerators(std::uint64_t seed, bool same_on_all_ranks) : seed_(seed), same_on_all_ranks_(same_on_all_ranks) {}

  std::uint64_t seed_of(int rank) const noexcept;

  // Makes a new, freshly seeded generator for the rank.
  void renew(int rank);

  // Throws std::out_of_range if the rank has no generator yet.
  const at::Generator& of(int rank) const;

 private:
  const std::uint64_t seed_;
  const bool same_on_all_ranks_;
  std::vector<at::Generator> generators_;  // by rank
};

std::uint64_t RankGenerators::seed_of(int rank) const noexcept {
  return same_on_all_ranks_ ? seed_ : seed_of_rank(seed_, rank);
}

void RankGenerators::renew(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= generators_.size()) generators_.resize(index + 1);
  generators_[index] = at::detail::createCPUGenerator(seed_of(rank));
}

const at::Generator& RankGenerators::of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= generators_.size() || !generators_[index].defined()) {
    throw std::out_of_range("rehearse: rank " + std::to_string(rank) + " has no generator yet");
  }
  return generators_[index];
}

class TorchRankState::Impl {
 public:
  explicit Impl(TorchStateOptions options)
      : layout_(tls_layout()),
        single_threaded_autograd_(options.single_threaded_autograd),
        generators_(options.seed, options.same_seed_on_all_ranks) {
    require_interposed(interposed_thread_exit());
    require_interposed(interposed_store());
    for (const Interposed& function : interposed_pools()) require_interposed(function);
    resolve();
    settings_.emplace(options.single_threaded_ops);
    if (!options.devices.empty()) devices_.emplace(std::move(options.devices), options.exchange_device);
  }

  ~Impl() {  // NOLINT(bugprone-exception-escape): only for ranks whose images were made on this thread
    for (std::size_t rank = 0; rank < main_alive_.size(); ++rank) unregister_groups_left_by(static_cast<int>(rank));
  }

  std::size_t image_bytes() const noexcept { return sizeof(ImageHeader) + variables_.image_bytes(); }

  void create_image(std::byte* image, int rank, std::uint32_t fiber) {
    if (thread_ != ::gettid()) {
      if (!fibers_.empty()) throw std::logic_error("rehearse: TorchRankState used on two threads at once");
      resolve();
    }
    const c10::DeviceIndex device = devices_ ? devices_->of(rank) : c10::DeviceIndex{-1};
    if (fiber == 0) {
      unregister_groups_left_by(rank);
      generators_.renew(rank);
      if (devices_) devices_->renew_generators(rank, generators_.seed_of(rank));
      const auto index = static_cast<std::size_t>(rank);
      if (index >= main_alive_.size()) main_alive_.resize(index + 1);
      main_alive_[index] = true;
    }
    auto record = std::make_unique<FiberRecord>(owned_, rank);
    record->slot = fibers_.size();
    record->device = device;
    const ImageHeader header{record.get(), generators_.of(rank).unsafeGetGeneratorImpl(),
                             kThreadIdBase + static_cast<std::uint64_t>(rank)};
    fibers_.push_back(std::move(record));
    std::memcpy(image, &header, sizeof header);
    variables_.create(image + sizeof header);
    if (single_threaded_autograd_) forbid_threads_of_autograd(image);
  }

  void exchange(std::byte* out, const std::byte* in) noexcept {
    if (devices_) [[unlikely]] {
      const FiberRecord& next = record_of(in);
      devices_->exchange(current_->device, next.rank, next.device);
    }
    exchange_variables(out, in);
  }

  void exchange_variables(std::byte* out, const std::byte* in) noexcept {
    ImageHeader next;
    std::memcpy(&next, in, sizeof next);
    if (!is_default(*record_function_) || record_functions_kept_ > 0) [[unlikely]]
      exchange_record_function(*next.record);

    ImageHeader now{current_, nullptr, 0};
    std::memcpy(&now.generator, default_generator_, sizeof now.generator);
    std::memcpy(default_generator_, &next.generator, sizeof next.generator);
    std::memcpy(&now.thread_id, thread_id_, sizeof now.thread_id);
    std::memcpy(thread_id_, &next.thread_id, sizeof next.thread_id);
    std::memcpy(out, &now, sizeof now);
    variables_.exchange(out + sizeof now, in + sizeof next);
    current_ = next.record;
    current_exit_list = current_ == &host_ ? nullptr : &current_->exits;
  }

  void end_fiber(int rank, std::uint32_t fiber) noexcept {
    if (fiber == 0) {
      c10d::unregister_all_process_groups();
      main_alive_[static_cast<std::size_t>(rank)] = false;
    }
    current_->exits.run();
    if (!is_default(*record_function_)) at::set_record_function_tls_({});
    forget(*current_);
    // The image is dead. Until the executor switches away, late registrations go to a list that never runs.
    ended_.exits.clear();
    current_ = &ended_;
    current_exit_list = &ended_.exits;
  }

  at::Generator generator(int rank) const { return generators_.of(rank); }

 private:
  static FiberRecord& record_of(const std::byte* image) noexcept {
    ImageHeader header;
    std::memcpy(&header, image, sizeof header);
    return *header.record;
  }

  // Finds this thread's variables. Their addresses do not change during the life of a thread.
  void resolve() {
    std::vector<std::byte*> blocks;
    std::vector<const std::byte*> initial;
    for (const TlsModule& module : layout_.modules) {
      blocks.push_back(tls_block_of_this_thread(module));
      initial.push_back(module.initial.data());
    }
    variables_ = TlsExchange(layout_.ranges, blocks, initial);
    thread_id_ = blocks[layout_.thread_id.module] + layout_.thread_id.offset;
    owned_.clear();
    for (const TlsRange& range : layout_.ranges) owned_.emplace_back(blocks[range.module] + range.offset, range.bytes);
    record_function_ = &at::get_record_function_tls_();
    default_generator_ = const_cast<at::Generator*>(&at::detail::getDefaultCPUGenerator());
    thread_ = ::gettid();
  }

  // Turns autograd's threads off in this image. The image must be live for that, because LibTorch creates the variable
  // on first use.
  void forbid_threads_of_autograd(std::byte* image) {
    std::vector<std::byte> here(image_bytes());
    exchange_variables(here.data(), image);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    exchange_variables(image, here.data());
  }

  // A main fiber that could not be unwound never reaches end_fiber(), so its rank's registry of process groups stays.
  // The rank of that number in the next world would find its group names taken. So this empties the registry, with the
  // state of a short-lived fiber of the rank.
  void unregister_groups_left_by(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (index >= main_alive_.size() || !main_alive_[index]) return;
    if (current_ != &host_ || thread_ != ::gettid()) return;
    main_alive_[index] = false;
    std::vector<std::byte> here(image_bytes());
    std::vector<std::byte> there(image_bytes());
    create_image(there.data(), rank, 1);
    exchange(here.data(), there.data());
    c10d::unregister_all_process_groups();
    end_fiber(rank, 1);
    exchange(there.data(), here.data());
  }

  void exchange_record_function(FiberRecord& next) noexcept {
    if (!is_default(*record_function_)) {
      current_->record_function = *record_function_;
      ++record_functions_kept_;
    }
    at::set_record_function_tls_(next.record_function.value_or(at::RecordFunctionTLS{}));
    if (!next.record_function) return;
    next.record_function.reset();
    --record_functions_kept_;
  }

  void forget(FiberRecord& record) noexcept {
    const std::size_t slot = record.slot;
    fibers_.back()->slot = slot;
    std::swap(fibers_[slot], fibers_.back());
    fibers_.pop_back();
  }

  const TlsLayout& layout_;
  std::optional<ProcessSettings> settings_;

  // The id of the system's thread, because the C++ id of a thread differs for each fiber.
  pid_t thread_ = 0;
  TlsExchange variables_;
  std::byte* thread_id_ = nullptr;
  std::vector<std::span<std::byte>> owned_;
  const at::RecordFunctionTLS* record_function_ = nullptr;
  void* default_generator_ = nullptr;
  std::size_t record_functions_kept_ = 0;  // by records of fibers that are not running

  const bool single_threaded_autograd_;
  RankGenerators generators_;
  std::optional<RankDevices> devices_;
  std::vector<bool> main_alive_;  // by rank: from create_image() to end_fiber() of the main fiber
  std::vector<std::unique_ptr<FiberRecord>> fibers_;
  FiberRecord host_{owned_};
  FiberRecord ended_{owned_};
  FiberRecord* current_ = &host_;
};

TorchRankState::TorchRankState(TorchStateOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
TorchRankState::~TorchRankState() = default;

std::size_t TorchRankState::image_bytes() const noexcept { return impl_->image_bytes(); }

void TorchRankState::create_image(std::byte* image, int rank, std::uint32_t fiber) {
  impl_->create_image(image, rank, fiber);
}

void TorchRankState::exchange(std::byte* out, const std::byte* in) noexcept { impl_->exchange(out, in); }

void TorchRankState::end_fiber(int rank, std::uint32_t fiber) noexcept { impl_->end_fiber(rank, fiber); }

at::Generator TorchRankState::generator(int rank) const { return impl_->generator(rank); }

}  // namespace rehearse::torch_state
