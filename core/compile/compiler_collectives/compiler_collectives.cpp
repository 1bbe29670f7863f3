// SPDX-License-Identifier: BSD-3-Clause
#include "compiler_collectives.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <rehearse/compile/errors.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/comm/byte_tensors.h>
#include <rehearse_internal/comm/described_backend.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace rehearse::compiler {
namespace {

// The value of which `sender` sent the bytes. Throws CompileError, which names the sender, if they are damaged.
template <class T>
T received(std::string_view bytes, std::string_view sender) {
  try {
    return archive::unpacked<T>(bytes, fmt::format("what {} sent about a compilation", sender));
  } catch (const archive::DamagedBytes& error) {
    throw CompileError(error.what());
  }
}

// Excluded, because captures must not record these messages, and compute models must not count them.
constexpr c10::DispatchKeySet kNotTheUsers{c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit,
                                           c10::DispatchKey::TESTING_ONLY_GenericWrapper};

comm::DescribedBackend* described(c10d::Backend& backend) { return dynamic_cast<comm::DescribedBackend*>(&backend); }

class NamedPayload {
 public:
  NamedPayload(c10d::Backend& backend, const at::Tensor& tensor, const std::string& name)
      : backend_(described(backend)), tensor_(tensor) {
    if (backend_ != nullptr) backend_->name_payload(tensor_, name);
  }
  NamedPayload(const NamedPayload&) = delete;
  NamedPayload& operator=(const NamedPayload&) = delete;
  ~NamedPayload() {
    if (backend_ != nullptr) backend_->forget_payload(tensor_.unsafeGetTensorImpl());
  }

 private:
  comm::DescribedBackend* const backend_;
  const at::Tensor tensor_;
};

// More than any rank says about its arguments. A larger number means damaged data; no memory is allocated for it.
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

// The outputs start as zeros, so that a call that a fault drops gives the same result in every run.
std::vector<at::Tensor> all_gather(c10d::Backend& backend, at::Tensor input, const std::string& name) {
  const NamedPayload named(backend, input, name);
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < backend.getSize(); ++rank) outputs[0].push_back(at::zeros_like(input));
  std::vector<at::Tensor> inputs{std::move(input)};
  backend.allgather(outputs, inputs)->wait();
  return std::move(outputs[0]);
}

// Every successful gather returns the rank's own bytes to it.
void require_own(const at::Tensor& found, const at::Tensor& sent, int rank, const std::string& name) {
  if (comm::bytes_in(found) == comm::bytes_in(sent)) return;
  throw CompileError(
      fmt::format("rank {} did not get its own bytes back from the gather of the {}: the gather left out its call, or "
                  "damaged the bytes",
                  rank, name));
}

std::int64_t length_in(const at::Tensor& tensor, int rank, const std::string& name) {
  const std::int64_t length = *tensor.const_data_ptr<std::int64_t>();
  if (0 < length && length <= kMostBytes) return length;
  throw CompileError(
      fmt::format("rank {} announced {} bytes for the {}; a message has 1 to {}", rank, length, name, kMostBytes));
}

c10::intrusive_ptr<c10d::Backend> cpu_backend(c10d::ProcessGroup& group) {
  const auto devices = group.getDeviceTypes();
  const auto is_cpu = [](const c10::Device& device) { return device.is_cpu(); };
  return std::ranges::any_of(devices, is_cpu) ? group.getBackend(c10::kCPU) : nullptr;
}

constexpr std::array<std::pair<Ability, const char*>, 3> kAbilities{
    {{Ability::run_eagerly, "eager"}, {Ability::compile, "miss"}, {Ability::serve, "hit"}}};

std::string name_of(Ability ability) {
  const auto is_it = [&](const auto& named) { return named.first == ability; };
  return std::ranges::find_if(kAbilities, is_it)->second;
}

std::optional<Ability> ability_named(const std::string& name) {
  for (const auto& [ability, text] : kAbilities) {
    if (name == text) return ability;
  }
  return std::nullopt;
}

// A part of the group's store for the n-th communicator that this rank makes. Back ends such as gloo publish their
// addresses there under keys that are always the same. The store counts, because a group may have several objects.
c10::intrusive_ptr<c10d::Store> store_of_next(c10d::ProcessGroup& group, const std::string& name) {
  const auto store = c10::make_intrusive<c10d::PrefixStore>(name, group.getStore());
  const std::int64_t number = store->add(fmt::format("communicators of {}", group.getRank()), 1);
  return c10::make_intrusive<c10d::PrefixStore>(std::to_string(number), store);
}

bool runs_once(const CompileOutcome& outcome) { return std::holds_alternative<RunsOnce>(outcome); }

struct StepMessage {
  std::string step, payload;
};

template <class Archive>
void fields(Archive& archive, StepMessage& message) {
  archive(message.step, message.payload);
}

}  // namespace

template <class Archive>
static void fields(Archive& archive, InputFact& fact) {
  archive(fact.source, fact.kind, fact.dtype, fact.sizes, fact.int_value, fact.float_value, fact.text);
  archive.check(fact.kind, InputFact::Kind::Absent, "kind of input");
  archive.check(fact.dtype, static_cast<c10::ScalarType>(static_cast<int>(c10::ScalarType::NumOptions) - 1), "dtype");
  for (const std::int64_t size : fact.sizes) archive.check(size, std::numeric_limits<std::int64_t>::max(), "size");
}

std::string encode(const InputFacts& facts) { return archive::packed(facts); }

InputFacts decode_facts(std::string_view bytes, const std::string& sender) {
  return received<InputFacts>(bytes, sender);
}

template <class Archive>
static void fields(Archive& archive, GraphHash& hash) {
  archive(hash.value);
}
template <class Archive>
static void fields(Archive& archive, ErrorText& error) {
  archive(error.text);
}
template <class Archive>
static void fields(Archive& archive, RunsOnce& once) {
  archive(once.refusal);
}

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
  const std::string mine = archive::packed(StepMessage{step, payload});
  store_->set(key(rank_, number), std::vector<std::uint8_t>(mine.begin(), mine.end()));
  std::vector<std::string> payloads;
  for (int rank = 0; rank < size_; ++rank) {
    const auto bytes = store_->get(key(rank, number));
    auto message = received<StepMessage>(std::string(bytes.begin(), bytes.end()),
                                         fmt::format("rank {} in the {} (\"{}\")", rank, step, name_));
    if (message.step != step) {
      throw CompileError(
          fmt::format("ranks of \"{}\" are at different steps of a compilation: rank {} at the {}, rank {} at the {}",
                      name_, rank_, step, rank, message.step));
    }
    payloads.push_back(std::move(message.payload));
  }
  // Every rank has sent its message of this round, so every rank has read all messages of the previous round.
  if (number > 1) store_->deleteKey(key(rank_, number - 1));
  return payloads;
}

std::vector<int> world_ranks_of(c10d::ProcessGroup& group) {
  const auto backend = cpu_backend(group);
  if (backend != nullptr) {
    if (auto* const own = described(*backend)) return own->identity().ranks;
  }
  return ranks_below(group.getSize());
}

CompilerCollectives::CompilerCollectives(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {
  if (group_ == nullptr) throw CompileError("the group of a compilation is null: is this rank no member of it?");
}

void CompilerCollectives::connect() {
  if (communicator_ != nullptr || store_) return;
  const auto parent = cpu_backend(*group_);
  auto* const own = parent != nullptr ? described(*parent) : nullptr;
  if (own != nullptr) {
    communicator_ = own->companion(std::string(kPrefix) + own->identity().name);
    return;
  }
  const auto name = std::string(kPrefix) + group_->getGroupName();
  if (parent != nullptr && parent->supportsSplitting() && group_->getStore() != nullptr) {
    auto options = parent->getBackendOptions();
    options->group_name = name;
    communicator_ = parent->split(store_of_next(*group_, name), world_ranks_of(*group_), options);
  } else {
    store_.emplace(group_->getStore(), name, group_->getRank(), group_->getSize());
  }
}

std::vector<std::string> CompilerCollectives::gather(std::string payload, const CollectiveLabel& label,
                                                     const char* step) {
  if (group_->getSize() == 1) return {std::move(payload)};
  const c10::impl::ExcludeDispatchKeyGuard not_the_users(kNotTheUsers);
  connect();
  const auto name = fmt::format("{} of {}", step, label.function);
  if (store_) return store_->gather(payload, name);
  REHEARSE_CHECK(communicator_ != nullptr, name);
  auto& backend = *communicator_;
  const std::vector<int> ranks = world_ranks_of(*group_);
  const auto own = static_cast<std::size_t>(group_->getRank());
  const auto length = at::full({1}, static_cast<std::int64_t>(payload.size()), at::kLong);
  const auto announced = all_gather(backend, length, name);
  REHEARSE_CHECK(announced.size() == ranks.size() && own < ranks.size(), name, announced.size(), ranks.size(), own);
  require_own(announced[own], length, ranks[own], name);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < ranks.size(); ++i) lengths.push_back(length_in(announced[i], ranks[i], name));
  const auto sent = comm::bytes_of(payload, *std::ranges::max_element(lengths));
  const auto all = all_gather(backend, sent, name);
  require_own(all[own], sent, ranks[own], name);
  return comm::texts_in(all, lengths);
}

std::string CompilerCollectives::sender(std::size_t rank, const CollectiveLabel& label, const char* step) const {
  return fmt::format("rank {} in the {} of {}", world_ranks_of(*group_).at(rank), step, label.function);
}

std::vector<InputFacts> CompilerCollectives::exchange(const InputFacts& mine, const CollectiveLabel& label) {
  std::vector<InputFacts> facts;
  for (const auto& payload : gather(encode(mine), label, "inputs")) {
    facts.push_back(decode_facts(payload, sender(facts.size(), label, "inputs")));
  }
  return facts;
}

Ability CompilerCollectives::least(Ability mine, const CollectiveLabel& label) {
  if (group_->getSize() == 1) return mine;
  const c10::impl::ExcludeDispatchKeyGuard not_the_users(kNotTheUsers);
  connect();
  const auto name = fmt::format("guards of {}", label.function);
  if (store_) {
    Ability least = mine;
    const auto all = store_->gather(name_of(mine), name);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto ability = ability_named(all[i]);
      if (!ability) {
        throw CompileError(fmt::format("what {} sent about a compilation is damaged: it is neither hit, miss nor eager",
                                       sender(i, label, "guards")));
      }
      least = std::min(least, *ability);
    }
    return least;
  }
  REHEARSE_CHECK(communicator_ != nullptr, name);
  auto& backend = *communicator_;
  std::vector<at::Tensor> tensors{at::full({1}, static_cast<std::int64_t>(mine), at::kLong)};
  const NamedPayload named(backend, tensors[0], name);
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MIN;
  backend.allreduce(tensors, options)->wait();
  const std::int64_t least = *tensors[0].const_data_ptr<std::int64_t>();
  if (-1 <= least && least <= 1) return static_cast<Ability>(least);
  throw CompileError(fmt::format(
      "rank {} got {} from the reduction of the {}, to which ranks give -1, 0 or 1: what a rank sent was damaged",
      world_ranks_of(*group_).at(static_cast<std::size_t>(group_->getRank())), least, name));
}

std::vector<GraphHash> CompilerCollectives::commit(const CompileOutcome& mine, const CollectiveLabel& label) {
  std::vector<CompileOutcome> outcomes;
  for (const auto& payload : gather(encode(mine), label, "outcome")) {
    outcomes.push_back(decode_outcome(payload, sender(outcomes.size(), label, "outcome")));
  }
  const std::vector<int> ranks = world_ranks_of(*group_);
  std::vector<GraphHash> hashes = agree(outcomes, ranks, label);
  refusal_ = hashes.empty() ? first_refusal(outcomes, ranks) : "";
  return hashes;
}

std::string encode(const CompileOutcome& outcome) { return archive::packed(outcome); }

CompileOutcome decode_outcome(std::string_view bytes, const std::string& sender) {
  return received<CompileOutcome>(bytes, sender);
}

std::vector<GraphHash> agree(const std::vector<CompileOutcome>& outcomes, const std::vector<int>& ranks,
                             const CollectiveLabel& label) {
  REHEARSE_CHECK(outcomes.size() == ranks.size(), outcomes.size(), ranks.size(), label.function);
  const auto failed = [](const CompileOutcome& outcome) { return std::holds_alternative<ErrorText>(outcome); };
  if (std::ranges::all_of(outcomes, failed)) return {};
  std::vector<GraphHash> hashes;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (const auto* const error = std::get_if<ErrorText>(&outcomes[i])) {
      throw CompileError(fmt::format("rank {} could not compile {}{}{}: {}", ranks[i], label.function,
                                     label.line.empty() ? "" : " for the call at ", label.line, error->text));
    }
    if (const auto* const hash = std::get_if<GraphHash>(&outcomes[i])) hashes.push_back(*hash);
  }
  if (std::ranges::any_of(outcomes, runs_once)) return {};
  return hashes;
}

std::string first_refusal(const std::vector<CompileOutcome>& outcomes, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto* const once = std::get_if<RunsOnce>(&outcomes[i]);
    if (once && !once->refusal.empty()) return fmt::format("rank {} cannot capture it: {}", ranks.at(i), once->refusal);
  }
  return "";
}

}  // namespace rehearse::compiler
