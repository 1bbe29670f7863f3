// SPDX-License-Identifier: BSD-3-Clause
#include "fired_faults.h"

#include <string>
#include <string_view>

#include <rehearse/sim/fault.h>

namespace rehearse::sim {
namespace {

class Hash {
 public:
  void add(std::uint64_t word) noexcept {
    value_ = (value_ ^ word) * 0x9E3779B97F4A7C15ull;
    value_ ^= value_ >> 32;
  }
  void add(std::string_view text) noexcept {
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    add(std::uint64_t{text.size()});
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0;
};

// "corrupt with=bit" of "corrupt rank=1 at=allreduce#2 with=bit": the rest says when, and on whom.
std::string effect_of(const std::string& text) {
  Fault fault;
  try {
    fault = parse_fault(text);
  } catch (const FaultError&) {
    return text;  // a name in it that no text can have
  }
  if (fault.verb != Fault::Verb::partition) fault.ranks.clear();
  fault.at = fault.call = std::nullopt;
  fault.group.clear();
  fault.label.clear();
  fault.after = std::nullopt;
  fault.on = std::nullopt;
  fault.p = 1;
  fault.times = 1;
  fault.optional = false;
  return to_string(fault);
}

}  // namespace

std::uint64_t hash_of_fired(const std::vector<FaultLine>& faults) {
  Hash hash;
  for (const auto& fault : faults) {
    if (fault.times == 0) continue;
    hash.add(effect_of(fault.fault));
    hash.add(fault.times);
    for (const auto& firing : fault.fired) {
      hash.add(static_cast<std::uint64_t>(firing.rank));
      hash.add(firing.call);
      hash.add(static_cast<std::uint64_t>(firing.at.time_since_epoch().count()));
    }
  }
  return hash.value();
}

}  // namespace rehearse::sim
