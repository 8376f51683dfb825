// SPDX-License-Identifier: Apache-2.0
// Streams, and launches captured from one into a CUDA graph, over the driver API. The simulated GPU captures
// nothing yet: there GraphApi::missing() says so.
#pragma once

#include <functional>

#include "gpu.h"

// What capturing calls besides the functions of runtime/driver.h.
#define FA4_GRAPH_FUNCTIONS(X) \
  X(cuStreamBeginCapture)      \
  X(cuStreamEndCapture)        \
  X(cuGraphInstantiate)        \
  X(cuGraphLaunch)             \
  X(cuGraphExecDestroy)        \
  X(cuGraphDestroy)

namespace fa4::support {

class GraphApi {
 public:
  explicit GraphApi(const Gpu& gpu);
  // "", or why nothing can be captured on this device.
  const std::string& missing() const { return missing_; }

#define FA4_GRAPH_MEMBER(name) decltype(&::name) name = nullptr;
  FA4_GRAPH_FUNCTIONS(FA4_GRAPH_MEMBER)
#undef FA4_GRAPH_MEMBER

 private:
  std::string missing_;
};

// A stream of the current context that does not wait for the default stream.
class Stream {
 public:
  explicit Stream(const Gpu& gpu);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  CUstream get() const { return stream_; }
  void synchronize() const;

 private:
  const Gpu& gpu_;
  CUstream stream_ = nullptr;
};

// The launches that `enqueue` puts on `stream`, as a graph to be launched any number of times. Captured in
// global mode: a call that may not be captured, from any thread, is an error. Throws std::runtime_error; what
// `enqueue` throws ends the capture and is thrown on.
class Graph {
 public:
  Graph(const Gpu& gpu, const GraphApi& api, const Stream& stream, const std::function<void()>& enqueue);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream) const;

 private:
  const Gpu& gpu_;
  const GraphApi& api_;
  CUgraphExec executable_ = nullptr;
};

}  // namespace fa4::support
