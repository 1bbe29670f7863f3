// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/power_sgd.h>

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

namespace rehearse::parallel {
namespace {

// Consecutive views of `flat`, one per matrix, with the shape [batch, matrix.size(side), rank_of(matrix)].
template <class RankOf>
std::vector<at::Tensor> pieces(const at::Tensor& flat, const std::vector<at::Tensor>& matrices, int side,
                               RankOf&& rank_of) {
  std::vector<at::Tensor> result;
  std::int64_t at = 0;
  for (const auto& matrix : matrices) {
    const auto batch = matrix.size(0), length = matrix.size(side), rank = rank_of(matrix);
    result.push_back(flat.narrow(0, at, batch * length * rank).view({batch, length, rank}));
    at += batch * length * rank;
  }
  return result;
}

}  // namespace

PowerSgd::PowerSgd(c10::intrusive_ptr<c10d::ProcessGroup> group, PowerSgdOptions options)
    : group_(std::move(group)), options_(options), seeds_(options.random_seed) {
  TORCH_CHECK(group_, "PowerSgd was given an empty process group");
  TORCH_CHECK_VALUE(options.matrix_approximation_rank > 0, "Expect `matrix_approximation_rank` > 0, got ",
                    options.matrix_approximation_rank, ".");
  TORCH_CHECK_VALUE(options.start_power_sgd_iter > 1 || !(options.use_error_feedback || options.warm_start),
                    "Expect `start_power_sgd_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                    "because PowerSGD can only be applied after the first two iterations in DDP; got ",
                    options.start_power_sgd_iter, ".");
}

at::Tensor PowerSgd::reduce(c10d::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  at::Tensor buffer = bucket.getBuffer();
  if (iteration_ < options_.start_power_sgd_iter) {
    finish(bucket);
    buffer.div_(group_->getSize());
    all_reduce(buffer);
    return buffer;
  }
  const auto index = bucket.getIndex();
  at::Tensor with_error;
  if (options_.use_error_feedback) {
    if (const auto error = errors_.find(index); error != errors_.end()) buffer.add_(error->second);
    with_error = buffer.clone();
  }
  auto parts = split(bucket.getGradients());
  const bool draw = allocate(index, parts, buffer);
  reduce_uncompressed(parts.uncompressed);
  compress(factors_[index], parts, draw);
  if (options_.use_error_feedback) errors_[index] = with_error.sub_(buffer);
  if (!options_.warm_start) factors_.clear();
  finish(bucket);
  return buffer;
}

void PowerSgd::finish(const c10d::GradBucket& bucket) {
  if (bucket.isLast()) ++iteration_;
}

std::int64_t PowerSgd::rank_of(const at::Tensor& batch) const {
  return std::min({batch.size(1), batch.size(2), options_.matrix_approximation_rank});
}

PowerSgd::Split PowerSgd::split(const std::vector<at::Tensor>& gradients) {
  Split result;
  std::vector<std::pair<std::vector<std::int64_t>, std::vector<at::Tensor>>> shapes;  // in order of appearance
  for (const auto& gradient : gradients) {
    const auto whole = gradient.numel();
    elements_before_ += whole;
    const auto n = gradient.dim() == 0 ? 1 : gradient.size(0);
    const auto matrix = whole == 0 ? at::Tensor() : gradient.view({1, n, whole / n});
    const auto compressed = whole == 0 ? 0 : (n + whole / n) * rank_of(matrix);
    if (static_cast<double>(compressed) * options_.min_compression_rate >= static_cast<double>(whole)) {
      elements_after_ += whole;
      result.uncompressed.push_back(gradient);
      continue;
    }
    elements_after_ += compressed;
    const auto same = std::ranges::find_if(shapes, [&](const auto& shape) { return matrix.sizes() == shape.first; });
    if (same == shapes.end()) {
      shapes.push_back({matrix.sizes().vec(), {matrix}});
    } else {
      same->second.push_back(matrix);
    }
  }
  for (auto& [shape, matrices] : shapes) {
    if (options_.batch_tensors_with_same_shape && matrices.size() > 1) {
      result.matrices.push_back(at::cat(matrices));
      result.originals.push_back(std::move(matrices));
    } else {
      for (auto& matrix : matrices) {
        result.matrices.push_back(std::move(matrix));
        result.originals.emplace_back();
      }
    }
  }
  return result;
}

void PowerSgd::all_reduce(at::Tensor& tensor) const {
  std::vector<at::Tensor> tensors = {tensor};
  group_->allreduce(tensors)->wait();
}

void PowerSgd::reduce_uncompressed(const std::vector<at::Tensor>& tensors) const {
  if (tensors.empty()) return;
  std::vector<at::Tensor> flat;
  for (const auto& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  auto all = at::cat(flat);
  all_reduce(all);
  all.div_(group_->getSize());
  std::int64_t at = 0;
  for (const auto& tensor : tensors) {
    tensor.copy_(all.narrow(0, at, tensor.numel()).view_as(tensor));
    at += tensor.numel();
  }
}

// Returns whether the caller must draw Q. False: P and Q of the last iteration are still there.
bool PowerSgd::allocate(std::size_t bucket, const Split& split, const at::Tensor& buffer) {
  if (options_.warm_start && factors_.contains(bucket)) return false;
  std::int64_t ps = 0, qs = 0;
  for (const auto& matrix : split.matrices) {
    ps += matrix.size(0) * matrix.size(1) * rank_of(matrix);
    qs += matrix.size(0) * matrix.size(2) * rank_of(matrix);
  }
  factors_[bucket] = {at::empty({ps}, buffer.options()), at::empty({qs}, buffer.options())};
  return true;
}

void PowerSgd::compress(Factors& factors, const Split& split, bool draw) {
  if (split.matrices.empty()) return;
  const auto rank = [this](const at::Tensor& matrix) { return rank_of(matrix); };
  auto ps = pieces(factors.p, split.matrices, 1, rank);
  auto qs = pieces(factors.q, split.matrices, 2, rank);
  if (draw) draw_normal(qs);
  for (auto& q : qs) orthogonalize(q);
  for (std::size_t i = 0; i < ps.size(); ++i) at::bmm_out(ps[i], split.matrices[i], qs[i]);
  all_reduce(factors.p);
  for (auto& p : ps) orthogonalize(p);
  for (std::size_t i = 0; i < ps.size(); ++i) at::bmm_out(qs[i], split.matrices[i].transpose(1, 2), ps[i]);
  all_reduce(factors.q);
  factors.q.div_(group_->getSize());
  for (std::size_t i = 0; i < ps.size(); ++i) {
    auto matrix = split.matrices[i];
    at::bmm_out(matrix, ps[i], qs[i].transpose(1, 2));
    for (std::size_t k = 0; k < split.originals[i].size(); ++k) {
      split.originals[i][k].copy_(matrix.narrow(0, static_cast<std::int64_t>(k), 1));
    }
  }
}

// Draws the seed as numpy's RandomState(seed).randint(1'000'000'000) does, and draws the numbers as torch.randn() does
// with this seed.
void PowerSgd::draw_normal(std::vector<at::Tensor>& qs) {
  constexpr std::uint32_t kMask = (1U << 30) - 1, kLast = 999'999'999;
  std::uint32_t seed = 0;
  do seed = static_cast<std::uint32_t>(seeds_()) & kMask;
  while (seed > kLast);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (auto& q : qs) {
    q.copy_(at::randn(q.sizes(), generator, at::TensorOptions().dtype(q.scalar_type()).device(at::kCPU)));
  }
}

// Makes the columns of each matrix orthonormal.
void PowerSgd::orthogonalize(at::Tensor matrices) const {
  const auto columns = matrices.size(2);
  const bool short_floats = matrices.scalar_type() == at::kHalf || matrices.scalar_type() == at::kBFloat16;
  if (columns > 2 && !short_floats) {
    matrices.copy_(std::get<0>(at::linalg_qr(matrices)));
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    auto column = matrices.narrow(2, i, 1);
    auto norm = at::linalg_vector_norm(column, 2, at::IntArrayRef{1}, /*keepdim=*/true);
    norm.add_(options_.orthogonalization_epsilon);
    column.div_(norm.masked_fill_(norm == 0, 1));
    if (i + 1 == columns) break;
    auto rest = matrices.narrow(2, i + 1, columns - i - 1);
    rest.sub_((column * rest).sum(1, /*keepdim=*/true) * column);
  }
}

}  // namespace rehearse::parallel
