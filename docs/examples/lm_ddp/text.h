// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>

// Reads a file. From a folder, reads its LICENSE and README.md, and all *.md files below its docs.
inline std::string read_text(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const char* name : {"LICENSE", "README.md"}) {
      if (fs::exists(path / name)) files.push_back(path / name);
    }
    if (fs::is_directory(path / "docs")) {
      for (const auto& entry : fs::recursive_directory_iterator(path / "docs")) {
        if (entry.path().extension() == ".md") files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());  // because folders list their files in no particular order
  } else {
    files.push_back(path);
  }
  std::string text;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read the text " + file.string());
    text.append(std::istreambuf_iterator<char>(in), {});
  }
  return text;
}

struct Batch {
  at::Tensor input, target;  // integers of shape [rows, context]; target is input, shifted by one byte
};

// Cuts a text into one shard for each rank, and draws windows from them. A window depends only on rank, step and row,
// so any rank can make any other rank's batch.
class Shards {
 public:
  Shards(std::string text, int ranks, std::int64_t context)
      : text_(std::move(text)), shard_(static_cast<std::int64_t>(text_.size()) / ranks), context_(context) {
    if (shard_ < context + 2) {
      throw std::runtime_error("the text has " + std::to_string(text_.size()) + " bytes; " + std::to_string(ranks) +
                               " ranks with a context of " + std::to_string(context) + " need " +
                               std::to_string(ranks * (context + 2)));
    }
  }

  Batch batch(int rank, std::int64_t step, std::int64_t rows) const {
    auto windows = at::empty({rows, context_ + 1}, at::kLong);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto start = rank * shard_ + static_cast<std::int64_t>(mix(rank, step, row) % (shard_ - context_));
      for (std::int64_t i = 0; i <= context_; ++i) {
        windows.mutable_data_ptr<std::int64_t>()[row * (context_ + 1) + i] =
            static_cast<unsigned char>(text_[start + i]);
      }
    }
    return {windows.narrow(1, 0, context_).contiguous(), windows.narrow(1, 1, context_).contiguous()};
  }

 private:
  static std::uint64_t mix(std::uint64_t rank, std::uint64_t step, std::uint64_t row) {
    std::uint64_t x = (step << 40) ^ (rank << 20) ^ row;
    for (int round = 0; round < 2; ++round) x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ull;
    return x ^ (x >> 32);
  }

  std::string text_;
  std::int64_t shard_, context_;
};
