// SPDX-License-Identifier: BSD-3-Clause
// "cuda" as a device of its own whose memory is the CPU's (--cuda=device). LibTorch keeps one type of device for
// others, PrivateUse1; here it has the name "cuda". Operators run in the CPU's kernels, to which each call lends its
// memory.
#pragma once

#include <cstdint>
#include <limits>

#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <torch/library.h>

namespace rehearse::python {

constexpr auto kCuda = c10::DeviceType::PrivateUse1;

// From now on there are tensors on "cuda". Call it once, after torch has been imported. Throws c10::Error if another
// library has made a device of this type.
void register_cuda();

// Each rank has a current device, the generator that its kernels draw from, and `count` devices on its node. Tensors
// are on devices with numbers up to kCudaMost; without tensors there (--cuda), numbers may be larger.
constexpr int kCudaMost = std::numeric_limits<c10::DeviceIndex>::max();
void begin_cuda_of_rank(int count);
int& current_cuda() noexcept;
c10::Device current_cuda_device() noexcept;
at::Generator& cuda_generator();

// The rank's collectives go through NCCL, which wants a GPU for each rank of a node.
void use_nccl_of_rank() noexcept;

c10::Allocator& cuda_allocator() noexcept;

// A generator of a GPU: a seed, and how much has been drawn with it. Its state has the 16 bytes of CUDA's.
class CudaGenerator final : public c10::GeneratorImpl {
 public:
  explicit CudaGenerator(c10::DeviceIndex index, std::uint64_t seed = c10::default_rng_seed_val);

  void set_current_seed(std::uint64_t seed) override;
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override;
  void set_offset(std::uint64_t offset) override { offset_ = offset; }
  std::uint64_t get_offset() const override { return offset_; }
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // What seeds the kernel that draws next. Each kernel draws another part.
  std::uint64_t next_seed() noexcept;

 private:
  CudaGenerator* clone_impl() const override;

  std::uint64_t seed_, offset_ = 0;
};

// The kernels that the device has of its own, beside the CPU's.
void register_kernels(torch::Library& aten);
void register_cells(torch::Library& aten);
void register_autocast(torch::Library& aten);
// Calls the CPU's kernel of any operator.
void call_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace rehearse::python
