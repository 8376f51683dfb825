// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include "cudart.h"

using namespace fa4::sim::cudart;

FA4SIM_CUDART cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return in_context([&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}

FA4SIM_CUDART cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return in_context([&] { return cuStreamCreate(stream, flags); });
}

FA4SIM_CUDART cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

FA4SIM_CUDART cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return in_context([&] { return cuStreamDestroy(stream); });
}

FA4SIM_CUDART cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_context([&] { return cuStreamSynchronize(stream); });
}

FA4SIM_CUDART cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return in_context([&] { return cuStreamQuery(stream); });
}

FA4SIM_CUDART cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return in_context([&] { return cuStreamWaitEvent(stream, event, flags); });
}

FA4SIM_CUDART cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return in_context(
      [&] { return cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status)); });
}

FA4SIM_CUDART cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return in_context([&] { return cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)); });
}

FA4SIM_CUDART cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return in_context([&] { return cuStreamEndCapture(stream, graph); });
}

FA4SIM_CUDART cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&] { return cuCtxGetStreamPriorityRange(least, greatest); });
}

FA4SIM_CUDART cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return in_context([&] { return cuEventCreate(event, flags); });
}

FA4SIM_CUDART cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

FA4SIM_CUDART cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return in_context([&] { return cuEventDestroy(event); });
}

FA4SIM_CUDART cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return in_context([&] { return cuEventRecord(event, stream); });
}

FA4SIM_CUDART cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return in_context([&] { return cuEventRecordWithFlags(event, stream, flags); });
}

FA4SIM_CUDART cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return in_context([&] { return cuEventSynchronize(event); });
}

FA4SIM_CUDART cudaError_t cudaEventQuery(cudaEvent_t event) {
  return in_context([&] { return cuEventQuery(event); });
}

FA4SIM_CUDART cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return in_context([&] { return cuEventElapsedTime(milliseconds, start, end); });
}
