// SPDX-License-Identifier: Apache-2.0
// Streams and events. Work ends inside the call that enqueues it, in the order of the calls, which every
// dependence between streams permits; so waiting is trivial and an event is a host time.
#include "state.h"

using namespace fa4::sim::driver;

namespace {

CUresult null_result() {
  return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is null");
}

CUresult find_event(CUevent handle, std::shared_ptr<Event>* event) {
  State& s = state();
  std::lock_guard guard(s.lock);
  *event = s.events.find(handle);
  return *event ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_HANDLE, "the event handle is not a live event");
}

CUresult create_stream(CUstream* result, unsigned flags, int priority) {
  return in_context([&](CUcontext current) -> CUresult {
    if (result == nullptr) return null_result();
    if (flags & ~unsigned{CU_STREAM_NON_BLOCKING})
      return fail(CUDA_ERROR_INVALID_VALUE, "unknown stream flags " + hex(flags));
    State& s = state();
    std::lock_guard guard(s.lock);
    // The one priority is 0; a driver clamps what is asked for to its range.
    (void)priority;
    *result = s.streams.add(std::make_shared<Stream>(Stream{current, flags, 0, s.next_id++}));
    return CUDA_SUCCESS;
  });
}

// body(stream or nullptr for an implicit one, current context)
template <typename Body>
CUresult of_stream(CUstream handle, Body body) {
  return in_context([&](CUcontext current) -> CUresult {
    if (CUresult r = check_stream(handle, current)) return r;
    State& s = state();
    std::lock_guard guard(s.lock);
    return body(s.streams.find(handle), current);
  });
}

using StreamPointer = const std::shared_ptr<Stream>&;

CUresult no_capture() {
  return fail(CUDA_ERROR_NOT_SUPPORTED, "stream capture is not simulated: launch the work directly");
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  return in_context([&](CUcontext) -> CUresult {
    if (milliseconds == nullptr) return null_result();
    std::shared_ptr<Event> from, to;
    if (CUresult r = find_event(start, &from)) return r;
    if (CUresult r = find_event(end, &to)) return r;
    if ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
      return fail(CUDA_ERROR_INVALID_HANDLE, "an event was created with CU_EVENT_DISABLE_TIMING");
    if (!from->recorded || !to->recorded)
      return fail(CUDA_ERROR_INVALID_HANDLE, "an event has not been recorded");
    *milliseconds = std::chrono::duration<float, std::milli>(*to->recorded - *from->recorded).count();
    return CUDA_SUCCESS;
  });
}

CUresult record(CUevent handle, CUstream stream, unsigned flags) {
  return in_context([&](CUcontext current) -> CUresult {
    if (flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL})
      return fail(CUDA_ERROR_INVALID_VALUE, "unknown event record flags " + hex(flags));
    std::shared_ptr<Event> event;
    if (CUresult r = find_event(handle, &event)) return r;
    if (CUresult r = check_stream(stream, current)) return r;
    if (event->context != current)
      return fail(CUDA_ERROR_INVALID_HANDLE, "the event belongs to another context than the current one");
    std::lock_guard guard(state().lock);
    event->recorded = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
  });
}

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuStreamCreate(CUstream* result, unsigned int flags) {
  return create_stream(result, flags, 0);
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* result, unsigned int flags,
                                                          int priority) {
  return create_stream(result, flags, priority);
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
  return in_context([&](CUcontext) -> CUresult {
    State& s = state();
    std::lock_guard guard(s.lock);
    if (is_implicit(handle) || !s.streams.remove(handle))
      return fail(CUDA_ERROR_INVALID_HANDLE, "the stream handle is not a live stream");
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  return of_stream(handle, [](StreamPointer, CUcontext) { return CUDA_SUCCESS; });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  return of_stream(handle, [](StreamPointer, CUcontext) { return CUDA_SUCCESS; });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
  return in_context([&](CUcontext current) -> CUresult {
    if (flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL})
      return fail(CUDA_ERROR_INVALID_VALUE, "unknown event wait flags " + hex(flags));
    std::shared_ptr<Event> found;
    if (CUresult r = find_event(event, &found)) return r;
    return check_stream(handle, current);
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return of_stream(handle, [&](StreamPointer stream, CUcontext) -> CUresult {
    if (flags == nullptr) return null_result();
    *flags = stream ? stream->flags : unsigned{CU_STREAM_DEFAULT};
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  return of_stream(handle, [&](StreamPointer stream, CUcontext) -> CUresult {
    if (priority == nullptr) return null_result();
    *priority = stream ? stream->priority : 0;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  return of_stream(handle, [&](StreamPointer stream, CUcontext) -> CUresult {
    if (id == nullptr) return null_result();
    *id = stream ? stream->id : 0;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return of_stream(handle, [&](StreamPointer stream, CUcontext current) -> CUresult {
    if (context == nullptr) return null_result();
    *context = stream ? stream->context : current;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return of_stream(handle, [&](StreamPointer, CUcontext) -> CUresult {
    if (device == nullptr) return null_result();
    *device = 0;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return of_stream(handle, [&](StreamPointer, CUcontext) -> CUresult {
    if (status == nullptr) return null_result();
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode) {
  return of_stream(handle, [](StreamPointer, CUcontext) { return no_capture(); });
}

FA4SIM_EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph*) {
  return of_stream(handle, [](StreamPointer, CUcontext) { return no_capture(); });
}

FA4SIM_EXPORT CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* user) {
  return in_context([&](CUcontext current) -> CUresult {
    if (CUresult r = check_stream(handle, current)) return r;
    if (function == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the host function is null");
    function(user);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuEventCreate(CUevent* result, unsigned int flags) {
  return in_context([&](CUcontext current) -> CUresult {
    if (result == nullptr) return null_result();
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (flags & CU_EVENT_INTERPROCESS)
      return fail(CUDA_ERROR_NOT_SUPPORTED, "events between processes are not simulated");
    if (flags & ~known) return fail(CUDA_ERROR_INVALID_VALUE, "unknown event flags " + hex(flags));
    State& s = state();
    std::lock_guard guard(s.lock);
    *result = s.events.add(std::make_shared<Event>(Event{current, flags, {}}));
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuEventDestroy(CUevent handle) {
  return in_context([&](CUcontext) -> CUresult {
    State& s = state();
    std::lock_guard guard(s.lock);
    if (!s.events.remove(handle))
      return fail(CUDA_ERROR_INVALID_HANDLE, "the event handle is not a live event");
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream stream) {
  return record(handle, stream, 0);
}

FA4SIM_EXPORT CUresult CUDAAPI cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags) {
  return record(handle, stream, flags);
}

FA4SIM_EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  return in_context([&](CUcontext) {
    std::shared_ptr<Event> event;
    return find_event(handle, &event);
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuEventQuery(CUevent handle) {
  return in_context([&](CUcontext) {
    std::shared_ptr<Event> event;
    return find_event(handle, &event);
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

// The name that programs built with toolkits before 13 link to.
#undef cuEventElapsedTime
FA4SIM_EXPORT CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}
