// SPDX-License-Identifier: BSD-3-Clause
#include "buffer_index.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <rehearse_internal/exec/check.h>

#include "watched_call.h"

namespace rehearse::sim {
namespace {

// The most spans of a buffer. A buffer with more runs is in the index as one span, from its first byte to its last.
constexpr std::size_t kSpansMost = 64;

using Node = IndexedBytes;

bool is_before(const std::byte* a, const std::byte* b) noexcept { return std::less<>{}(a, b); }

bool is_before(const Node& a, const Node& b) noexcept {
  if (a.bytes.begin != b.bytes.begin) return is_before(a.bytes.begin, b.bytes.begin);
  // If several buffers have spans that begin at one address, the spans of each buffer stay side by side, in the order
  // of its runs.
  return a.buffer != b.buffer ? a.buffer->order < b.buffer->order : std::less<>{}(&a, &b);
}

// Spreads a number over all bits (SplitMix64). The priorities are as good as random, and equal in each run.
std::uint32_t priority_of(std::uint64_t number) noexcept {
  number += 0x9E3779B97F4A7C15ull;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9ull;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBull;
  return static_cast<std::uint32_t>(number >> 32);
}

void include(const Node& other, Node& node) noexcept {
  if (is_before(node.last_end, other.last_end)) node.last_end = other.last_end;
  if (is_before(node.last_written_end, other.last_written_end)) node.last_written_end = other.last_written_end;
}

void sum_up(Node& node) noexcept {
  node.last_end = node.bytes.end;
  node.last_written_end = node.buffer->writes() ? node.bytes.end : nullptr;
  if (node.left != nullptr) include(*node.left, node);
  if (node.right != nullptr) include(*node.right, node);
}

// Splits a tree into the nodes before `key` and the rest.
void split(Node* tree, const Node& key, Node*& before, Node*& behind) noexcept {
  if (tree == nullptr) {
    before = behind = nullptr;
  } else if (is_before(*tree, key)) {
    before = tree;
    split(tree->right, key, tree->right, behind);
    sum_up(*tree);
  } else {
    behind = tree;
    split(tree->left, key, before, tree->left);
    sum_up(*tree);
  }
}

Node* merge(Node* before, Node* behind) noexcept {
  if (before == nullptr || behind == nullptr) return before != nullptr ? before : behind;
  Node* const top = before->priority >= behind->priority ? before : behind;
  if (top == before) {
    before->right = merge(before->right, behind);
  } else {
    behind->left = merge(before, behind->left);
  }
  sum_up(*top);
  return top;
}

void insert(Node*& root, Node& node) noexcept {
  Node** link = &root;
  sum_up(node);
  while (*link != nullptr && (*link)->priority >= node.priority) {
    include(node, **link);
    link = is_before(node, **link) ? &(*link)->left : &(*link)->right;
  }
  split(*link, node, node.left, node.right);
  *link = &node;
  sum_up(node);
}

void erase(Node*& tree, const Node& node) noexcept {
  REHEARSE_CHECK(tree != nullptr, node.buffer->order);
  if (tree == &node) {
    tree = merge(node.left, node.right);
    return;
  }
  erase(is_before(node, *tree) ? tree->left : tree->right, node);
  if (tree->last_end == node.bytes.end || tree->last_written_end == node.bytes.end) sum_up(*tree);
}

void collect(const Node* tree, const ByteSpan& bytes, BufferIndex::Which which, std::vector<WatchedBuffer*>& found) {
  if (tree == nullptr) return;
  const bool all = which == BufferIndex::Which::all;
  if (!is_before(bytes.begin, all ? tree->last_end : tree->last_written_end)) return;
  collect(tree->left, bytes, which, found);
  if (!is_before(tree->bytes.begin, bytes.end)) return;
  if ((all || tree->buffer->writes()) && overlap(tree->bytes, bytes)) found.push_back(tree->buffer);
  collect(tree->right, bytes, which, found);
}

void sort(std::vector<WatchedBuffer*>& found) {
  if (found.size() < 2) return;
  std::ranges::sort(found, [](const auto* a, const auto* b) { return a->order < b->order; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

}  // namespace

void BufferIndex::add(WatchedBuffer& buffer) {
  const auto& footprint = buffer.footprint;
  buffer.order = ++added_;
  const auto add_span = [&](const ByteSpan& bytes) {
    buffer.spans.push_back({bytes, &buffer, priority_of(buffer.order * kSpansMost + buffer.spans.size())});
  };
  const auto runs = footprint.runs();
  if (runs.size() <= 1 || runs.size() > kSpansMost) {
    add_span(footprint.bounds());
  } else {
    std::for_each(runs.begin(), runs.end(), add_span);
  }
  for (auto& node : buffer.spans) insert(root_, node);
}

void BufferIndex::remove(WatchedBuffer& buffer) noexcept {
  for (const auto& node : buffer.spans) erase(root_, node);
  buffer.spans.clear();
}

std::vector<WatchedBuffer*> BufferIndex::find(const ByteSpan& bytes, Which which) const {
  std::vector<WatchedBuffer*> found;
  collect(root_, bytes, which, found);
  sort(found);
  return found;
}

std::vector<WatchedBuffer*> BufferIndex::find(const Footprint& bytes, Which which) const {
  std::vector<WatchedBuffer*> found;
  const auto runs = bytes.runs();
  if (runs.size() <= kSpansMost) {
    for (const auto& run : runs) collect(root_, run, which, found);
  } else {
    collect(root_, bytes.bounds(), which, found);
  }
  if (found.empty()) return found;
  sort(found);
  std::erase_if(found, [&](const auto* buffer) { return !overlap(buffer->footprint, bytes); });
  return found;
}

}  // namespace rehearse::sim
