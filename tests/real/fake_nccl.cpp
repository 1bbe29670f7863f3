// SPDX-License-Identifier: BSD-3-Clause
#include "fake_nccl.h"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "fake_cuda.h"

namespace rehearse::real {
namespace {

at::ScalarType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return at::kChar;
    case ncclInt32:
      return at::kInt;
    case ncclInt64:
      return at::kLong;
    case ncclFloat16:
      return at::kHalf;
    case ncclBfloat16:
      return at::kBFloat16;
    case ncclFloat32:
      return at::kFloat;
    case ncclFloat64:
      return at::kDouble;
    default:  // tensors of other types are only moved
      return at::kByte;
  }
}

at::Tensor view(void* data, std::size_t count, ncclDataType_t type) {
  return at::from_blob(data, {static_cast<std::int64_t>(count)}, at::TensorOptions(dtype_of(type)));
}

at::Tensor reduced(const std::vector<at::Tensor>& all, ncclRedOp_t op) {
  at::Tensor result = all[0].clone();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto& next = all[rank];
    result = op == ncclProd  ? result * next
             : op == ncclMax ? at::maximum(result, next)
             : op == ncclMin ? at::minimum(result, next)
                             : result + next;
  }
  if (op != ncclAvg) return result;
  const auto ranks = static_cast<std::int64_t>(all.size());
  return at::isFloatingType(result.scalar_type()) ? result / ranks : at::div(result, ranks, "trunc");
}

}  // namespace

struct FakeNccl::Clique {
  int ranks = 0;
  int number = 0;
  std::map<std::string, std::shared_ptr<Match>> matches;
};

struct FakeNccl::Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int splits = 0;
  std::map<std::string, int> calls;  // the number of collectives so far, and of messages by sender and receiver
  bool aborted = false;
};

struct FakeNccl::Part {
  const char* call = "";
  void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  double factor = 1;
  int root = 0;
};

struct FakeNccl::Match {
  std::vector<std::pair<int, Part>> parts;  // the parts that have arrived, with their ranks
  std::size_t wanted = 0;
  bool done = false;

  Part& of(int rank) {
    for (auto& [who, part] : parts) {
      if (who == rank) return part;
    }
    TORCH_CHECK(false, "no such rank");
  }

  void join(const Comm& comm, const Part& part) {
    parts.emplace_back(comm.rank, part);
    if (parts.size() < wanted) return;
    move(comm.clique->ranks);
    done = true;
  }

  void move(int ranks);
};

struct FakeNccl::Call {
  Comm* comm;
  cudaStream_t stream;
  Part part;
  std::shared_ptr<Match> match;
};

void FakeNccl::Match::move(int ranks) {
  const std::string call = parts.front().second.call;
  const auto input = [this](int rank) {
    auto& part = of(rank);
    auto values = view(part.send, part.count, part.type).clone();
    return part.factor == 1 ? values : values * part.factor;
  };
  if (call == "p2p") {
    Part& from = parts[0].second.send != nullptr ? parts[0].second : parts[1].second;
    Part& to = &from == &parts[0].second ? parts[1].second : parts[0].second;
    view(to.receive, to.count, to.type).copy_(view(from.send, from.count, from.type));
    return;
  }
  std::vector<at::Tensor> inputs(static_cast<std::size_t>(ranks));
  const Part& first = of(0);
  for (int rank = 0; rank < ranks; ++rank) {
    if (call != "broadcast" || rank == first.root) inputs[static_cast<std::size_t>(rank)] = input(rank);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    Part& part = of(rank);
    const auto count = static_cast<std::int64_t>(part.count);
    if (call == "broadcast") {
      view(part.receive, part.count, part.type).copy_(inputs[static_cast<std::size_t>(part.root)]);
    } else if (call == "all_gather") {
      view(part.receive, part.count * static_cast<std::size_t>(ranks), part.type).copy_(at::cat(inputs));
    } else if (call == "reduce_scatter") {
      const auto own = count / ranks;
      view(part.receive, static_cast<std::size_t>(own), part.type)
          .copy_(reduced(inputs, part.op).narrow(0, own * rank, own));
    } else if (call == "all_reduce" || rank == part.root) {
      view(part.receive, part.count, part.type).copy_(reduced(inputs, part.op));
    }
  }
}

FakeNccl::FakeNccl() = default;
FakeNccl::~FakeNccl() = default;

std::vector<std::string> FakeNccl::happened() const {
  const std::lock_guard lock(mutex_);
  return happened_;
}

void FakeNccl::note(const char* what, const Comm& comm) {
  happened_.push_back(fmt::format("{} {}/{}", what, comm.rank, comm.clique->ranks));
}

ncclResult_t FakeNccl::get_version(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* FakeNccl::get_error_string(ncclResult_t result) {
  return result == ncclSystemError    ? "unhandled system error"
         : result == ncclInvalidUsage ? "invalid usage"
                                      : "an error";
}
const char* FakeNccl::get_last_error(ncclComm_t) { return ""; }

ncclResult_t FakeNccl::get_unique_id(ncclUniqueId* id) {
  const std::lock_guard lock(mutex_);
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "clique %d", ++ids_);
  return ncclSuccess;
}

ncclComm_t FakeNccl::make(const std::shared_ptr<Clique>& clique, int rank) {
  comms_.push_back(std::make_unique<Comm>());
  comms_.back()->clique = clique;
  comms_.back()->rank = rank;
  return reinterpret_cast<ncclComm_t>(comms_.back().get());
}

ncclResult_t FakeNccl::comm_init_rank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const std::lock_guard lock(mutex_);
  auto& clique = cliques_[id.internal];
  if (clique == nullptr) clique = std::make_shared<Clique>(Clique{ranks, ids_, {}});
  *comm = make(clique, rank);
  note("init", of(*comm));
  return ncclSuccess;
}

ncclResult_t FakeNccl::comm_split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm) {
  const std::lock_guard lock(mutex_);
  const int split = of(comm).splits++;
  if (color == NCCL_SPLIT_NOCOLOR) {
    *new_comm = nullptr;
    return ncclSuccess;
  }
  auto& clique = cliques_[fmt::format("split {} of {}", split, of(comm).clique->number)];
  if (clique == nullptr) clique = std::make_shared<Clique>(Clique{0, ++ids_, {}});
  ++clique->ranks;
  *new_comm = make(clique, key);
  happened_.push_back(fmt::format("split {}", key));
  return ncclSuccess;
}

ncclResult_t FakeNccl::comm_destroy(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  note("destroy", of(comm));
  return ncclSuccess;
}

ncclResult_t FakeNccl::comm_abort(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  of(comm).aborted = true;
  note("abort", of(comm));
  return ncclSuccess;
}

ncclResult_t FakeNccl::comm_get_async_error(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t FakeNccl::group_start() {
  ++depth_;
  return ncclSuccess;
}

ncclResult_t FakeNccl::group_end() {
  if (--depth_ > 0) return ncclSuccess;
  ++groups_ended_;
  launch();
  return ncclSuccess;
}

// Enqueues one piece of work per stream, in the order of the streams' first calls.
void FakeNccl::launch() {
  std::vector<std::pair<cudaStream_t, std::vector<Call>>> works;
  for (auto& call : std::exchange(group_, {})) {
    auto work = std::find_if(works.begin(), works.end(), [&](const auto& each) { return each.first == call.stream; });
    if (work == works.end()) work = works.insert(works.end(), {call.stream, {}});
    work->second.push_back(std::move(call));
  }
  for (auto& [stream, calls] : works) {
    FakeCuda::instance().enqueue(stream, [calls = std::move(calls), here = false]() mutable {
      if (!std::exchange(here, true)) {
        for (auto& call : calls) call.match->join(*call.comm, call.part);
      }
      return std::all_of(calls.begin(), calls.end(),
                         [](const Call& call) { return call.match->done || call.comm->aborted; });
    });
  }
}

ncclResult_t FakeNccl::add(Part part, ncclComm_t comm, cudaStream_t stream, const std::string& match) {
  Comm& own = of(comm);
  // A rank may send to itself, so sends and receives have separate counters.
  const bool pair = std::string_view(part.call) == "p2p";
  const bool receives = pair && part.send == nullptr;
  const int number = own.calls[receives ? match + " received" : match]++;
  auto& place = own.clique->matches[fmt::format("{} #{}", match, number)];
  if (place == nullptr) {
    place = std::make_shared<Match>();
    place->wanted = pair ? 2 : static_cast<std::size_t>(own.clique->ranks);
  }
  group_.push_back({&own, stream, part, place});
  if (depth_ == 0) launch();
  return ncclSuccess;
}

ncclResult_t FakeNccl::all_reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add(
      {"all_reduce", const_cast<void*>(send), receive, count, type, op, factors_.contains(op) ? factors_.at(op) : 1},
      comm, stream, "collective");
}

ncclResult_t FakeNccl::broadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                                 ncclComm_t comm, cudaStream_t stream) {
  return add({"broadcast", const_cast<void*>(send), receive, count, type, ncclSum, 1, root}, comm, stream,
             "collective");
}

ncclResult_t FakeNccl::reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                              int root, ncclComm_t comm, cudaStream_t stream) {
  return add(
      {"reduce", const_cast<void*>(send), receive, count, type, op, factors_.contains(op) ? factors_.at(op) : 1, root},
      comm, stream, "collective");
}

ncclResult_t FakeNccl::all_gather(const void* send, void* receive, std::size_t send_count, ncclDataType_t type,
                                  ncclComm_t comm, cudaStream_t stream) {
  return add({"all_gather", const_cast<void*>(send), receive, send_count, type}, comm, stream, "collective");
}

ncclResult_t FakeNccl::reduce_scatter(const void* send, void* receive, std::size_t receive_count, ncclDataType_t type,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add({"reduce_scatter", const_cast<void*>(send), receive,
              receive_count * static_cast<std::size_t>(of(comm).clique->ranks), type, op,
              factors_.contains(op) ? factors_.at(op) : 1},
             comm, stream, "collective");
}

ncclResult_t FakeNccl::send(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                            cudaStream_t stream) {
  Part part{"p2p", const_cast<void*>(send), nullptr, count, type};
  if (send == nullptr) part.send = &depth_;  // not null, because a part without `send` is a receive
  return add(part, comm, stream, fmt::format("{} to {}", of(comm).rank, peer));
}

ncclResult_t FakeNccl::recv(void* receive, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                            cudaStream_t stream) {
  return add({"p2p", nullptr, receive, count, type}, comm, stream, fmt::format("{} to {}", peer, of(comm).rank));
}

ncclResult_t FakeNccl::red_op_create_pre_mul_sum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                                 ncclScalarResidence_t, ncclComm_t) {
  *op = static_cast<ncclRedOp_t>(next_op_++);
  factors_[*op] = view(scalar, 1, type).item<double>();
  return ncclSuccess;
}

ncclResult_t FakeNccl::red_op_destroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }

}  // namespace rehearse::real
