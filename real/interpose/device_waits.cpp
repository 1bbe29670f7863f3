// SPDX-License-Identifier: BSD-3-Clause
#include "device_waits.h"

#include <utility>

namespace rehearse::real {

void DeviceWaits::wait(std::function<bool()> is_over, const exec::Observer& observer) {
  Wait wait{std::move(is_over), false, {}};
  struct Listed {
    Listed(std::vector<Wait*>& all, Wait& one) : waits(all), wait(one) { waits.push_back(&wait); }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;
    ~Listed() { std::erase(waits, &wait); }
    std::vector<Wait*>& waits;
    Wait& wait;
  } listed(waits_, wait);
  while (!wait.over) wait.queue.wait(observer);
}

bool DeviceWaits::poll() noexcept {
  bool any = others_.poll();
  for (Wait* const wait : waits_) {
    if (wait->over || !wait->is_over()) continue;
    wait->over = true;
    wait->queue.notify_all();
    any = true;
  }
  return any;
}

}  // namespace rehearse::real
