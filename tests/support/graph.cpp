// SPDX-License-Identifier: Apache-2.0
// The driver calls of graph.h.
#include "graph.h"

#include <type_traits>

namespace fa4::support {

// Two steps, so that cuda.h's renaming happens before the name becomes a string.
#define FA4_GRAPH_TEXT(symbol) #symbol
#define FA4_GRAPH_SYMBOL(name) FA4_GRAPH_TEXT(name)

GraphApi::GraphApi(const Gpu& gpu) {
  if (gpu.simulated()) {
    missing_ = "the simulated GPU captures no stream";
    return;
  }
  fa4::Message message;
  const auto find = [&](auto& member, const char* symbol) {
    member =
        reinterpret_cast<std::remove_reference_t<decltype(member)>>(gpu.driver().resolve(symbol, message));
    if (member == nullptr) missing_ = message.text();
  };
#define FA4_GRAPH_RESOLVE(name) find(name, FA4_GRAPH_SYMBOL(name));
  FA4_GRAPH_FUNCTIONS(FA4_GRAPH_RESOLVE)
#undef FA4_GRAPH_RESOLVE
}

Stream::Stream(const Gpu& gpu) : gpu_(gpu) {
  gpu_.check(gpu_.driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}
Stream::~Stream() {
  gpu_.driver().cuStreamDestroy(stream_);
}
void Stream::synchronize() const {
  gpu_.check(gpu_.driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

Graph::Graph(const Gpu& gpu, const GraphApi& api, const Stream& stream, const std::function<void()>& enqueue)
    : gpu_(gpu), api_(api) {
  gpu_.check(api_.cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  CUgraph graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    if (api_.cuStreamEndCapture(stream.get(), &graph) == CUDA_SUCCESS) api_.cuGraphDestroy(graph);
    throw;
  }
  gpu_.check(api_.cuStreamEndCapture(stream.get(), &graph), "cuStreamEndCapture");
  const CUresult result = api_.cuGraphInstantiate(&executable_, graph, 0);
  api_.cuGraphDestroy(graph);
  gpu_.check(result, "cuGraphInstantiate");
}
Graph::~Graph() {
  api_.cuGraphExecDestroy(executable_);
}
void Graph::launch(const Stream& stream) const {
  gpu_.check(api_.cuGraphLaunch(executable_, stream.get()), "cuGraphLaunch");
}

}  // namespace fa4::support
