// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/argument.h>

#include <bit>
#include <cmath>
#include <type_traits>

namespace rehearse::graph {
namespace {

// Tells 0 from -0. All NaNs are the same.
bool same_number(double left, double right) {
  if (std::isnan(left)) return std::isnan(right);
  return std::bit_cast<std::uint64_t>(left) == std::bit_cast<std::uint64_t>(right);
}

}  // namespace

Slice::Slice(Argument start, Argument stop, Argument step) {
  bounds_.reserve(3);
  bounds_.push_back(std::move(start));
  bounds_.push_back(std::move(stop));
  bounds_.push_back(std::move(step));
}

const Argument& Slice::start() const { return bounds_[0]; }
const Argument& Slice::stop() const { return bounds_[1]; }
const Argument& Slice::step() const { return bounds_[2]; }

Node* Argument::node() const noexcept {
  Node* const* node = get_if<Node*>();
  return node ? *node : nullptr;
}

bool operator==(const Argument& left, const Argument& right) {
  if (left.value_.index() != right.value_.index()) return false;
  return std::visit(
      [&right]<class T>(const T& mine) {
        const T& other = std::get<T>(right.value_);
        if constexpr (std::is_same_v<T, double>) {
          return same_number(mine, other);
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return same_number(mine.real(), other.real()) && same_number(mine.imag(), other.imag());
        } else if constexpr (std::is_same_v<T, Slice>) {
          return mine.bounds() == other.bounds();
        } else {
          return mine == other;
        }
      },
      left.value_);
}

}  // namespace rehearse::graph
