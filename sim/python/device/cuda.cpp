// SPDX-License-Identifier: BSD-3-Clause
#include "python/device/cuda.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "comm/call/host_view.h"
#include "exec/fiber/fiber.h"

namespace rehearse::python {
namespace {

struct OfRank {
  int current = 0;
  bool uses_nccl = false;
  c10::DeviceIndex communicates_on = -1;  // with NCCL; negative: it has not yet
  at::Generator generator{c10::make_intrusive<CudaGenerator>(c10::DeviceIndex{0})};
};

int g_count = 1;  // devices of a node

std::vector<OfRank> g_of_ranks;  // the first is that of the code outside of ranks

int rank() noexcept {
  const auto* const fiber = exec::fiber_of_thread();
  return fiber != nullptr ? fiber->rank : -1;
}

OfRank& of_rank() noexcept {
  const auto index = static_cast<std::size_t>(rank()) + 1;
  if (index >= g_of_ranks.size()) g_of_ranks.resize(index + 1);
  return g_of_ranks[index];
}

// Of DDP's statistics, which would warn without one: nothing takes time that it could tell.
struct NoTimer final : c10d::Timer {
  std::optional<std::int64_t> measureDifference(Event /*start*/, Event /*end*/) override { return std::nullopt; }
};

// As NCCL does when it connects.
void require_own_device(c10::Device device) {
  if (!of_rank().uses_nccl) return;
  const int own = rank(), node = own / g_count;
  of_rank().communicates_on = device.index();
  const int end = std::min((node + 1) * g_count, static_cast<int>(g_of_ranks.size()) - 1);
  for (int other = node * g_count; other < end; ++other) {
    if (other == own || g_of_ranks[static_cast<std::size_t>(other) + 1].communicates_on != device.index()) continue;
    TORCH_CHECK(false, "Duplicate GPU detected : rank ", own, " and rank ", other, " both on CUDA device ",
                device.index(),
                ": NCCL wants one for each rank (torch.cuda.set_device(local_rank) before tensors are made)");
  }
}

c10::DeviceIndex exchange_current(c10::DeviceIndex device) noexcept {
  return static_cast<c10::DeviceIndex>(std::exchange(current_cuda(), device));
}

// All work is done when its call returns, so a device has one stream.
class Guard final : public c10::impl::NoOpDeviceGuardImpl<kCuda> {
 public:
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(g_count); }
  c10::Device getDevice() const override { return current_cuda_device(); }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kCuda, exchange_current(device.has_index() ? device.index() : current_cuda_device().index())};
  }
  void setDevice(c10::Device device) const override { exchangeDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { exchangeDevice(device); }
  c10::Stream getStream(c10::Device device) const noexcept override { return stream_of(device); }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override { return stream_of(device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override { return stream_of(device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  void record(void** /*event*/, const c10::Stream& /*stream*/, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {}
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  bool queryEvent(void* /*event*/) const override { return true; }
  bool queryStream(const c10::Stream& /*stream*/) const override { return true; }
  void synchronizeStream(const c10::Stream& /*stream*/) const override {}
  void synchronizeEvent(void* /*event*/) const override {}
  void synchronizeDevice(c10::DeviceIndex /*device*/) const override {}

 private:
  static c10::Stream stream_of(c10::Device device) noexcept {
    return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : current_cuda_device());
  }
};

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto data = c10::GetCPUAllocator()->allocate(bytes);
    data.unsafe_set_device(current_cuda_device());
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return c10::GetCPUAllocator()->raw_deleter(); }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(g_count); }
  void setCurrentDevice(c10::DeviceIndex device) const override { exchange_current(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_cuda_device().index(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return exchange_current(device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  bool isPinnedPtr(const void* /*data*/) const override { return true; }
  c10::Device getDeviceFromPtr(void* /*data*/) const override { return current_cuda_device(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*device*/) const override { return cuda_generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::Generator(c10::make_intrusive<CudaGenerator>(device < 0 ? current_cuda_device().index() : device));
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    auto* const impl = storage.unsafeGetStorageImpl();
    auto data = cuda_allocator().allocate(bytes);
    data.unsafe_set_device(storage.device());
    const auto kept = std::min(bytes, impl->nbytes());
    if (kept > 0 && storage.data() != nullptr) std::memcpy(data.get(), storage.data(), kept);
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(bytes);
  }
};

std::uint64_t mixed(std::uint64_t x) noexcept {  // SplitMix64's finalizer
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

constexpr std::uint64_t kOffsetOfKernel = 4;  // CUDA's kernels advance by multiples of it
constexpr std::int64_t kBytesOfState = 16;

}  // namespace

CudaGenerator::CudaGenerator(c10::DeviceIndex index, std::uint64_t seed)
    : GeneratorImpl(c10::Device(kCuda, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), seed_(seed) {}

void CudaGenerator::set_current_seed(std::uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

std::uint64_t CudaGenerator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom(true));
  return seed_;
}

void CudaGenerator::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK(state.numel() == kBytesOfState && state.dtype() == caffe2::TypeMeta::Make<std::uint8_t>(),
              "RNG state of a GPU has ", kBytesOfState, " bytes; this one has ", state.numel());
  const auto* const bytes = state.data_ptr_impl<std::uint8_t>();
  std::memcpy(&seed_, bytes, sizeof seed_);
  std::memcpy(&offset_, bytes + sizeof seed_, sizeof offset_);
}

c10::intrusive_ptr<c10::TensorImpl> CudaGenerator::get_state() const {
  const auto state = at::empty({kBytesOfState}, at::kByte);
  auto* const bytes = state.mutable_data_ptr<std::uint8_t>();
  std::memcpy(bytes, &seed_, sizeof seed_);
  std::memcpy(bytes + sizeof seed_, &offset_, sizeof offset_);
  return state.getIntrusivePtr();
}

std::uint64_t CudaGenerator::next_seed() noexcept {
  const auto next = mixed(seed_ ^ mixed(offset_ + 1));
  offset_ += kOffsetOfKernel;
  return next;
}

CudaGenerator* CudaGenerator::clone_impl() const {
  auto* const clone = new CudaGenerator(device().index(), seed_);
  clone->set_offset(offset_);
  return clone;
}

void begin_cuda_of_rank(int count) {
  g_count = count;
  of_rank() = {};
}

void use_nccl_of_rank() noexcept { of_rank().uses_nccl = true; }

int& current_cuda() noexcept { return of_rank().current; }

c10::Device current_cuda_device() noexcept { return {kCuda, static_cast<c10::DeviceIndex>(current_cuda())}; }

at::Generator& cuda_generator() { return of_rank().generator; }

c10::Allocator& cuda_allocator() noexcept {
  static Allocator allocator;
  return allocator;
}

namespace {

// The device has its own kernel where the CPU has: otherwise LibTorch would compose other operators. `of_cpu`:
// SparseCPU for `own` = SparsePrivateUse1, ...
void register_where_cpu_has(torch::Library& aten, c10::DispatchKey of_cpu, c10::DispatchKey own) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getRegistrationsForDispatchKey(of_cpu)) {
    const auto op = dispatcher.findOp(name);
    if (!name.name.starts_with("aten::") || !op || op->hasKernelForDispatchKey(own)) continue;
    aten.impl(toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&call_on_cpu>());
  }
}

}  // namespace

void register_cuda() {
  static Hooks hooks;
  comm::observe_private_devices(require_own_device);
  c10d::TimerRegistry()->Register(
      kCuda, [](c10::Device) -> std::unique_ptr<c10d::Timer> { return std::make_unique<NoTimer>(); });
  c10::SetAllocator(kCuda, &cuda_allocator());
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::impl::DeviceGuardImplRegistrar(kCuda, new Guard);
  const auto library = [](const char* space, c10::DispatchKey key) {
    return new torch::Library(torch::Library::IMPL, space, key, __FILE__, __LINE__);  // as long as the process
  };
  for (const auto key :
       {c10::DispatchKey::PrivateUse1, c10::DispatchKey::SparsePrivateUse1, c10::DispatchKey::SparseCsrPrivateUse1,
        c10::DispatchKey::QuantizedPrivateUse1, c10::DispatchKey::NestedTensorPrivateUse1}) {
    library("_", key)->fallback(torch::CppFunction::makeFromBoxedFunction<&call_on_cpu>());
  }
  library("_", c10::DispatchKey::AutocastPrivateUse1)->fallback(torch::CppFunction::makeFallthrough());
  for (const auto key : {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative})
    library("aten", key)->impl("_copy_from", torch::CppFunction::makeFallthrough());  // the CPU's copy resolves them
  auto& aten = *library("aten", c10::DispatchKey::PrivateUse1);
  register_kernels(aten);
  register_cells(aten);
  register_where_cpu_has(aten, c10::DispatchKey::CPU, c10::DispatchKey::PrivateUse1);
  register_where_cpu_has(*library("aten", c10::DispatchKey::SparsePrivateUse1), c10::DispatchKey::SparseCPU,
                         c10::DispatchKey::SparsePrivateUse1);
  register_autocast(*library("aten", c10::DispatchKey::AutocastPrivateUse1));
}

}  // namespace rehearse::python
