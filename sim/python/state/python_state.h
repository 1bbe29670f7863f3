// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <rehearse_internal/exec/rank_state.h>
#include <rehearse_internal/torch_state/torch_state.h>

#include "python/state/cpython.h"
#include "python/state/settings.h"
#include "python/state/variables.h"

namespace rehearse::python {

// Bytes at one address in the process of which each rank has its own: the state of the generators of random and numpy.
// Each draw changes the first or the last words.
struct SharedBytes {
  struct Ends {
    std::uint64_t first = 0, last = 0;
    bool operator==(const Ends&) const = default;
  };

  std::byte* live;
  std::size_t size;

  Ends ends() const noexcept {
    Ends ends;
    std::memcpy(&ends.first, live, sizeof ends.first);
    std::memcpy(&ends.last, live + size - sizeof ends.last, sizeof ends.last);
    return ends;
  }
};

// What ranks exchange, found once in the process.
struct Exchanged {
  MainThread main_thread;
  void** default_generator = nullptr;            // the pointer in torch.default_generator
  PyObject* default_generator_object = nullptr;  // borrowed
  Variables variables;
  Settings settings;
  std::vector<SharedBytes> of_ranks;
};

// Python's state of a rank, around LibTorch's: which thread state is attached, the main thread, and what `Exchanged`
// lists.
class PythonState final : public exec::RankState {
 public:
  PythonState(Exchanged& exchanged, torch_state::TorchRankState& inner);
  ~PythonState() override;

  std::size_t image_bytes() const noexcept override { return sizeof(Head) + inner_.image_bytes(); }
  void create_image(std::byte* image, int rank, std::uint32_t fiber) override;
  void exchange(std::byte* out, const std::byte* in) noexcept override;
  void end_fiber(int rank, std::uint32_t fiber) noexcept override { inner_.end_fiber(rank, fiber); }

  // The thread state of the suspended fiber with this image; null: it has none, or this thread does not hold the
  // interpreter lock, which reading the state's frames needs.
  static PyThreadState* state_in(const std::byte* image) noexcept;

  // The thread state of the rank's main thread; null: it has ended.
  void set_main_state(int rank, PyThreadState* state) noexcept;

 private:
  struct alignas(16) Head {
    PyThreadState* attached = nullptr;
    PyThreadState* own = nullptr;  // of the fiber, whether or not it is attached
    void* generator = nullptr;
    int rank = -1;
  };

  void exchange_rank(int to, PyThreadState* own, bool is_attached) noexcept;
  void exchange_bytes(int from, int to) noexcept;
  void name_main_thread() noexcept;

  // What a rank has of one SharedBytes. Copied only if it differs from what lives.
  struct OwnBytes {
    SharedBytes::Ends ends;
    std::vector<std::byte> all;
  };
  std::vector<OwnBytes>& bytes_of(int rank);

  Exchanged& exchanged_;
  torch_state::TorchRankState& inner_;
  const unsigned long host_id_;
  PyThreadState* const host_state_;  // of the thread that runs the world
  PyThreadState* const host_main_state_;
  int rank_ = -1;                             // whose state is live; -1: the host's
  std::vector<std::vector<OwnBytes>> bytes_;  // of Exchanged::of_ranks, by rank + 1
  std::vector<PyThreadState*> main_states_;   // by rank
};

}  // namespace rehearse::python
