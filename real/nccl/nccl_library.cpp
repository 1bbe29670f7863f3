// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_library.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace rehearse::real {
namespace {

struct Functions {
  decltype(&::ncclGetVersion) get_version;
  decltype(&::ncclGetErrorString) get_error_string;
  decltype(&::ncclGetLastError) get_last_error;
  decltype(&::ncclGetUniqueId) get_unique_id;
  decltype(&::ncclCommInitRank) comm_init_rank;
  decltype(&::ncclCommSplit) comm_split;
  decltype(&::ncclCommDestroy) comm_destroy;
  decltype(&::ncclCommAbort) comm_abort;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error;
  decltype(&::ncclGroupStart) group_start;
  decltype(&::ncclGroupEnd) group_end;
  decltype(&::ncclAllReduce) all_reduce;
  decltype(&::ncclBroadcast) broadcast;
  decltype(&::ncclReduce) reduce;
  decltype(&::ncclAllGather) all_gather;
  decltype(&::ncclReduceScatter) reduce_scatter;
  decltype(&::ncclSend) send;
  decltype(&::ncclRecv) recv;
  decltype(&::ncclRedOpCreatePreMulSum) red_op_create_pre_mul_sum;
  decltype(&::ncclRedOpDestroy) red_op_destroy;
};

class Library {
 public:
  explicit Library(const char* path) : path_(path), handle_(::dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
    if (handle_ != nullptr) return;
    const auto reason = loader_error();
    throw LibraryError(fmt::format(
        "{} cannot be opened: {}. The real mode needs NCCL: pip install nvidia-nccl-cu13, or name its folder "
        "in LD_LIBRARY_PATH",
        path_, reason));
  }

  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function != nullptr) return;
    throw LibraryError(
        fmt::format("{} has no function {}; the real mode needs NCCL 2.{} or later", path_, name, kMinorWithSplit));
  }

 private:
  static constexpr int kMinorWithSplit = 18;

  const char* path_;
  void* handle_;
};

Functions functions_of(const Library& library) {
  Functions found{};
  library.find("ncclGetVersion", found.get_version);
  library.find("ncclGetErrorString", found.get_error_string);
  library.find("ncclGetLastError", found.get_last_error);
  library.find("ncclGetUniqueId", found.get_unique_id);
  library.find("ncclCommInitRank", found.comm_init_rank);
  library.find("ncclCommSplit", found.comm_split);
  library.find("ncclCommDestroy", found.comm_destroy);
  library.find("ncclCommAbort", found.comm_abort);
  library.find("ncclCommGetAsyncError", found.comm_get_async_error);
  library.find("ncclGroupStart", found.group_start);
  library.find("ncclGroupEnd", found.group_end);
  library.find("ncclAllReduce", found.all_reduce);
  library.find("ncclBroadcast", found.broadcast);
  library.find("ncclReduce", found.reduce);
  library.find("ncclAllGather", found.all_gather);
  library.find("ncclReduceScatter", found.reduce_scatter);
  library.find("ncclSend", found.send);
  library.find("ncclRecv", found.recv);
  library.find("ncclRedOpCreatePreMulSum", found.red_op_create_pre_mul_sum);
  library.find("ncclRedOpDestroy", found.red_op_destroy);
  return found;
}

class NcclLibrary final : public NcclApi {
 public:
  explicit NcclLibrary(const char* path) : nccl_(functions_of(Library(path))) {}

  ncclResult_t get_version(int* version) override { return nccl_.get_version(version); }
  const char* get_error_string(ncclResult_t result) override { return nccl_.get_error_string(result); }
  const char* get_last_error(ncclComm_t comm) override { return nccl_.get_last_error(comm); }

  ncclResult_t get_unique_id(ncclUniqueId* id) override { return nccl_.get_unique_id(id); }
  ncclResult_t comm_init_rank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) override {
    return nccl_.comm_init_rank(comm, ranks, id, rank);
  }
  // Passes no configuration: its size would come from our header, and the library may expect another size.
  ncclResult_t comm_split(ncclComm_t comm, int color, int key, ncclComm_t* new_comm) override {
    return nccl_.comm_split(comm, color, key, new_comm, nullptr);
  }
  ncclResult_t comm_destroy(ncclComm_t comm) override { return nccl_.comm_destroy(comm); }
  ncclResult_t comm_abort(ncclComm_t comm) override { return nccl_.comm_abort(comm); }
  ncclResult_t comm_get_async_error(ncclComm_t comm, ncclResult_t* error) override {
    return nccl_.comm_get_async_error(comm, error);
  }

  ncclResult_t group_start() override { return nccl_.group_start(); }
  ncclResult_t group_end() override { return nccl_.group_end(); }

  ncclResult_t all_reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                          ncclComm_t comm, cudaStream_t stream) override {
    return nccl_.all_reduce(send, receive, count, type, op, comm, stream);
  }
  ncclResult_t broadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) override {
    return nccl_.broadcast(send, receive, count, type, root, comm, stream);
  }
  ncclResult_t reduce(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                      ncclComm_t comm, cudaStream_t stream) override {
    return nccl_.reduce(send, receive, count, type, op, root, comm, stream);
  }
  ncclResult_t all_gather(const void* send, void* receive, std::size_t send_count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) override {
    return nccl_.all_gather(send, receive, send_count, type, comm, stream);
  }
  ncclResult_t reduce_scatter(const void* send, void* receive, std::size_t receive_count, ncclDataType_t type,
                              ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) override {
    return nccl_.reduce_scatter(send, receive, receive_count, type, op, comm, stream);
  }
  ncclResult_t send(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                    cudaStream_t stream) override {
    return nccl_.send(send, count, type, peer, comm, stream);
  }
  ncclResult_t recv(void* receive, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                    cudaStream_t stream) override {
    return nccl_.recv(receive, count, type, peer, comm, stream);
  }

  ncclResult_t red_op_create_pre_mul_sum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                         ncclScalarResidence_t residence, ncclComm_t comm) override {
    return nccl_.red_op_create_pre_mul_sum(op, scalar, type, residence, comm);
  }
  ncclResult_t red_op_destroy(ncclRedOp_t op, ncclComm_t comm) override { return nccl_.red_op_destroy(op, comm); }

 private:
  const Functions nccl_;
};

}  // namespace

std::string loader_error() {
  const char* const reason = ::dlerror();
  return reason != nullptr ? reason : "for no stated reason";
}

std::unique_ptr<NcclApi> open_nccl(const char* path) {
  return std::make_unique<NcclLibrary>(path != nullptr ? path : "libnccl.so.2");
}

std::string name_of(NcclApi& nccl) {
  int version = 0;  // 22809 is 2.28.9
  if (nccl.get_version(&version) != ncclSuccess || version <= 0) return "NCCL";
  return fmt::format("NCCL {}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

}  // namespace rehearse::real
