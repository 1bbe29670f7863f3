// SPDX-License-Identifier: BSD-3-Clause
#include "store_gather.h"

#include <utility>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>

#include "byte_stream.h"

namespace rehearse::compiler {

StoreGather::StoreGather(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size)
    : store_(std::move(store)), name_(std::move(name)), rank_(rank), size_(size) {
  if (store_ == nullptr) {
    throw CompileError(
        fmt::format("ranks cannot agree on what they compile (\"{}\"): the group has neither a back end for tensors of "
                    "the CPU that "
                    "makes groups of groups, nor a store",
                    name_));
  }
}

std::string StoreGather::key(int rank, std::int64_t number) const {
  return fmt::format("{}/{} of rank {}", name_, number, rank);
}

std::vector<std::string> StoreGather::gather(const std::string& payload, const std::string& step) {
  const auto number = store_->add(fmt::format("{}/count of rank {}", name_, rank_), 1);
  ByteWriter writer;
  writer.text(step);
  writer.text(payload);
  const std::string mine = writer.take();
  store_->set(key(rank_, number), std::vector<std::uint8_t>(mine.begin(), mine.end()));
  std::vector<std::string> payloads;
  for (int rank = 0; rank < size_; ++rank) {
    const auto bytes = store_->get(key(rank, number));
    const std::string given(bytes.begin(), bytes.end());
    ByteReader reader(given, fmt::format("rank {} in the {} (\"{}\")", rank, step, name_));
    if (const auto other = reader.text(); other != step) {
      throw CompileError(
          fmt::format("ranks of \"{}\" are at different steps of a compilation: rank {} at the {}, rank {} at the {}",
                      name_, rank_, step, rank, other));
    }
    payloads.push_back(reader.text());
    reader.finish();
  }
  // Every rank has sent its message of this round, so every rank has read all messages of the previous round.
  if (number > 1) store_->deleteKey(key(rank_, number - 1));
  return payloads;
}

}  // namespace rehearse::compiler
