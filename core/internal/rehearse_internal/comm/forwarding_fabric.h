// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include <rehearse_internal/comm/fabric.h>

namespace rehearse::comm {

// A fabric in front of another one, which must outlive it. Forwards everything about groups and the preparation of
// calls; derived classes handle the transfers.
class ForwardingFabric : public Fabric {
 public:
  explicit ForwardingFabric(Fabric& below) noexcept : below_(below) {}

  std::span<const c10::DeviceType> device_types() const noexcept override { return below_.device_types(); }
  bool takes_shorter_messages() const noexcept override { return below_.takes_shorter_messages(); }
  void open(const GroupIdentity& group, const GroupIdentity* parent) override { below_.open(group, parent); }
  void close(const GroupIdentity& group) noexcept override { below_.close(group); }
  void abort(const GroupIdentity& group, int rank) noexcept override { below_.abort(group, rank); }
  void prepare(Operation& call, const GroupIdentity& group, int rank) override { below_.prepare(call, group, rank); }

 protected:
  Fabric& below() noexcept { return below_; }

 private:
  Fabric& below_;
};

}  // namespace rehearse::comm
