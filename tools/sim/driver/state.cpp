// SPDX-License-Identifier: Apache-2.0
// The driver's state and the checks that most entry points begin with.
#include "state.h"

#include <atomic>
#include <cstdio>

#include "../per_thread.h"
#include "../ptx/module.h"

namespace fa4::sim::driver {

namespace {

std::mutex error_lock;
bool logged = false;  // guarded by error_lock
std::string& error_text() {
  static std::string* const text = new std::string;  // never destroyed, as the state
  return *text;
}

// error_lock is held.
CUresult keep(CUresult code, std::string sentence, bool aloud) {
  if (aloud) fprintf(stderr, "fa4sim: error %d: %s\n", static_cast<int>(code), sentence.c_str());
  error_text() = std::move(sentence);
  return code;
}

}  // namespace

uintptr_t HandleNumbers::next() {
  static std::atomic<uintptr_t> number{0xfa4'0000'0000};
  return number.fetch_add(16);
}

State& state() {
  static State* const instance =
      new State;  // never destroyed: other static destructors may still call the driver
  return *instance;
}

std::vector<CUcontext>& context_stack() {
  static auto* const stacks = new PerThread<std::vector<CUcontext>>;
  return stacks->get();
}

CUresult fail(CUresult code, std::string sentence) {
  std::lock_guard guard(error_lock);
  return keep(code, std::move(sentence), logged);
}

CUresult fail_aloud(CUresult code, std::string sentence) {
  std::lock_guard guard(error_lock);
  return keep(code, std::move(sentence), true);
}

void log_failures(bool on) {
  std::lock_guard guard(error_lock);
  logged = on;
}

std::string last_error() {
  std::lock_guard guard(error_lock);
  return error_text();
}

std::string hex(uint64_t value) {
  char text[2 + 16 + 1];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

CUresult check_initialised() {
  State& s = state();
  std::lock_guard guard(s.lock);
  return s.initialised ? CUDA_SUCCESS : fail(CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called");
}

CUresult check_current(CUcontext* current) {
  State& s = state();
  std::lock_guard guard(s.lock);
  if (!s.initialised) return fail(CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called");
  const auto& stack = context_stack();
  if (stack.empty()) return fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
  const auto context = s.contexts.find(stack.back());
  if (context == nullptr || !context->alive)
    return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context has been destroyed");
  if (context->fault != CUDA_SUCCESS) return context->fault;  // the kernel's report stays the last error
  *current = stack.back();
  return CUDA_SUCCESS;
}

bool is_implicit(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

CUresult check_stream(CUstream stream, CUcontext current) {
  if (is_implicit(stream)) return CUDA_SUCCESS;
  State& s = state();
  std::lock_guard guard(s.lock);
  const auto found = s.streams.find(stream);
  if (found == nullptr) return fail(CUDA_ERROR_INVALID_HANDLE, "the stream handle is not a live stream");
  if (found->context != current)
    return fail(CUDA_ERROR_INVALID_HANDLE, "the stream belongs to another context than the current one");
  return CUDA_SUCCESS;
}

CUresult find_function(CUfunction handle, std::shared_ptr<Function>* function) {
  State& s = state();
  {
    std::lock_guard guard(s.lock);
    *function = s.functions.find(handle);
    if (*function == nullptr)
      return fail(CUDA_ERROR_INVALID_HANDLE, "the function handle is not a live function");
    if ((*function)->entry != nullptr) return CUDA_SUCCESS;
  }
  Function& f = **function;
  const EntryInfo* entry;
  try {
    entry = &f.code->program->take(f.number);  // takes its time
  } catch (const ptx::Error& error) {
    return fail(CUDA_ERROR_INVALID_PTX,
                "kernel " + f.code->program->entries()[f.number] + ": " + error.what());
  }
  std::lock_guard guard(s.lock);
  if (f.entry != nullptr) return CUDA_SUCCESS;
  for (int d = 0; d < 3; ++d)
    f.cluster[d] = entry->cluster[0] == 0 ? 0 : static_cast<int>(std::max(1u, entry->cluster[d]));
  f.max_dynamic_shared =
      entry->static_shared_bytes < shared_default ? shared_default - entry->static_shared_bytes : 0;
  f.entry = entry;
  return CUDA_SUCCESS;
}

void add_functions(const std::shared_ptr<Code>& code, CUcontext context, CUmodule module, CUlibrary library,
                   std::map<std::string, CUfunction>* functions) {
  const std::vector<std::string>& entries = code->program->entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    auto function = std::make_shared<Function>();
    function->context = context;
    function->module = module;
    function->library = library;
    function->code = code;
    function->number = i;
    (*functions)[entries[i]] = state().functions.add(std::move(function));
  }
}

void free_globals(const Code& code) {
  State& s = state();
  std::lock_guard guard(s.device_lock);
  for (uint64_t address : code.global_addresses) s.device->memory().release(address);
}

void destroy_contents(CUcontext context) {
  State& s = state();
  std::vector<std::shared_ptr<Code>> codes;
  std::vector<uint64_t> addresses;
  {
    std::lock_guard guard(s.lock);
    s.streams.remove_if([&](const Stream& stream) { return stream.context == context; });
    s.events.remove_if([&](const Event& event) { return event.context == context; });
    s.functions.remove_if([&](const Function& function) { return function.context == context; });
    s.modules.remove_if([&](const Module& module) {
      if (module.context != context) return false;
      codes.push_back(module.code);
      return true;
    });
    std::erase_if(s.allocations, [&](const auto& item) {
      if (item.second != context) return false;
      addresses.push_back(item.first);
      return true;
    });
  }
  for (const auto& code : codes) free_globals(*code);
  std::lock_guard guard(s.device_lock);
  for (uint64_t address : addresses) s.device->memory().release(address);
}

}  // namespace fa4::sim::driver
