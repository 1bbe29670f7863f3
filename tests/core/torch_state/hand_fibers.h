// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <rehearse_internal/torch_state/torch_state.h>

namespace rehearse::torch_state {

// Calls a RankState as the executor does: for main fibers 0..n-1, one per rank, that run only inside run(). The
// destructor ends all remaining fibers.
class HandFibers {
 public:
  HandFibers(TorchRankState& state, int ranks) : state_(state), host_(state.image_bytes()) {
    for (int rank = 0; rank < ranks; ++rank) {
      images_.emplace_back(state.image_bytes());
      state_.create_image(images_.back().data(), rank, 0);
    }
  }
  HandFibers(const HandFibers&) = delete;
  HandFibers& operator=(const HandFibers&) = delete;
  ~HandFibers() {
    for (std::size_t k = 0; k < images_.size(); ++k) {
      if (!images_[k].empty()) end(static_cast<int>(k));
    }
  }

  template <class Body>
  void run(int rank, const Body& body) {
    auto& image = images_[static_cast<std::size_t>(rank)];
    state_.exchange(host_.data(), image.data());
    body();
    state_.exchange(image.data(), host_.data());
  }

  // Leaves a fiber behind, as the executor does if it cannot unwind one. The fiber never runs again.
  void leave_behind(int rank) { images_[static_cast<std::size_t>(rank)].clear(); }

  void end(int rank) {
    run(rank, [&] { state_.end_fiber(rank, 0); });
    images_[static_cast<std::size_t>(rank)].clear();
  }

 private:
  TorchRankState& state_;
  std::vector<std::byte> host_;
  std::vector<std::vector<std::byte>> images_;
};

}  // namespace rehearse::torch_state
