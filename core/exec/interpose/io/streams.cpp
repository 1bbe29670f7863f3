// SPDX-License-Identifier: BSD-3-Clause
// Calls of stdio that read or write data. If other ranks may read or write the same data, because the stream is a
// regular file, these calls may switch to other ranks in worlds with ExecutorOptions::preempt. Calls for characters,
// lines or formats are not interposed.
#include <array>
#include <cstdio>

#include "exec/interpose/real.h"
#include "exec/interpose/sync/preempt.h"
#include "exec/interpose/world_state.h"

namespace rehearse::exec::interpose {

size_t stream_fread(void* data, size_t bytes, size_t count, FILE* stream) REHEARSE_INTERPOSES("fread");
size_t stream_fread_checked(void* data, size_t room, size_t bytes, size_t count, FILE* stream)
    REHEARSE_INTERPOSES("__fread_chk");
size_t stream_fwrite(const void* data, size_t bytes, size_t count, FILE* stream) REHEARSE_INTERPOSES("fwrite");
int stream_fflush(FILE* stream) REHEARSE_INTERPOSES("fflush");
int stream_fclose(FILE* stream) REHEARSE_INTERPOSES("fclose");

namespace {

constinit Real<size_t (*)(void*, size_t, size_t, FILE*)> real_fread("fread");
constinit Real<size_t (*)(void*, size_t, size_t, size_t, FILE*)> real_fread_checked("__fread_chk");
constinit Real<size_t (*)(const void*, size_t, size_t, FILE*)> real_fwrite("fwrite");
constinit Real<int (*)(FILE*)> real_fflush("fflush");
constinit Real<int (*)(FILE*)> real_fclose("fclose");

// Does nothing for a null stream, by which fflush() means all streams.
void may_meet_others(FILE* stream, void* return_address) {
  if (current_fiber() == nullptr || stream == nullptr) return;
  const int file = ::fileno(stream);
  if (may_be_shared(file)) preempt_file_call(return_address, file);
}

}  // namespace

size_t stream_fread(void* data, size_t bytes, size_t count, FILE* stream) {
  may_meet_others(stream, __builtin_return_address(0));
  return real_fread(data, bytes, count, stream);
}

size_t stream_fread_checked(void* data, size_t room, size_t bytes, size_t count, FILE* stream) {
  may_meet_others(stream, __builtin_return_address(0));
  return real_fread_checked(data, room, bytes, count, stream);
}

size_t stream_fwrite(const void* data, size_t bytes, size_t count, FILE* stream) {
  may_meet_others(stream, __builtin_return_address(0));
  return real_fwrite(data, bytes, count, stream);
}

int stream_fflush(FILE* stream) {
  may_meet_others(stream, __builtin_return_address(0));
  return real_fflush(stream);
}

int stream_fclose(FILE* stream) {
  may_meet_others(stream, __builtin_return_address(0));
  return real_fclose(stream);
}

std::span<const Interposed> stream_functions() {
  static const std::array functions = {
      Interposed{"fread", reinterpret_cast<const void*>(stream_fread)},
      Interposed{"__fread_chk", reinterpret_cast<const void*>(stream_fread_checked)},
      Interposed{"fwrite", reinterpret_cast<const void*>(stream_fwrite)},
      Interposed{"fflush", reinterpret_cast<const void*>(stream_fflush)},
      Interposed{"fclose", reinterpret_cast<const void*>(stream_fclose)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
