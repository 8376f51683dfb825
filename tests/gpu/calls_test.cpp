// SPDX-License-Identifier: Apache-2.0
// How fa4_forward may be called on a device: captured in a CUDA graph, from several threads and streams, with
// another context current, behind launches and captures that failed, and on two GPUs. What the simulated GPU
// can do is tested on it, too; what it cannot is skipped with the reason.
#include <cstdio>
#include <thread>

#include "support/graph.h"
#include "work.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Problem;
using test::Work;

const Problem kCausal{Dtype::fp16, true, 2, 300, 300, 4, 2, 0, 128};
const Problem kFull{Dtype::bf16, false, 1, 200, 333, 6, 3, 0, 64};

void skip(const char* what, const std::string& reason) {
  std::printf("skipped: %s: %s\n", what, reason.c_str());
  SUCCEED(reason);
}

support::Gpu& gpu() {
  return test::device().gpu();
}

CUcontext current_context() {
  CUcontext context = nullptr;
  gpu().check(gpu().driver().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  return context;
}

template <typename Function>
Function* driver_function(Function*, const char* symbol) {
  fa4::Message message;
  void* address = gpu().driver().resolve(symbol, message);
  INFO(message.text());
  REQUIRE(address != nullptr);
  return reinterpret_cast<Function*>(address);
}
// Two steps, so that cuda.h's renaming happens before the name becomes a string.
#define SYMBOL_TEXT(symbol) #symbol
#define DRIVER_FUNCTION_OF(symbol) driver_function(decltype (&::symbol)(nullptr), SYMBOL_TEXT(symbol))
#define DRIVER_FUNCTION(name) DRIVER_FUNCTION_OF(name)

// Another context of the same device, current until it goes.
class OtherContext {
 public:
  OtherContext() : before_(current_context()) {
    CUdevice device = 0;
    gpu().check(gpu().driver().cuCtxGetDevice(&device), "cuCtxGetDevice");
    gpu().check(DRIVER_FUNCTION(cuCtxCreate)(&context_, nullptr, 0, device), "cuCtxCreate");
  }
  ~OtherContext() {
    DRIVER_FUNCTION(cuCtxDestroy)(context_);
    gpu().driver().cuCtxSetCurrent(before_);
  }
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;
  CUcontext get() const { return context_; }

 private:
  CUcontext before_, context_ = nullptr;
};

std::string pointer_text(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", pointer);
  return text;
}

void forward(const Work& work, CUstream stream) {
  const fa4_forward_params params = work.params(stream);
  const fa4_status status = fa4_forward(test::device().context(0), &params);
  INFO(fa4_last_error());
  REQUIRE(status == FA4_OK);
}

}  // namespace

TEST_CASE("a captured call is replayed with other data", "[calls]") {
  const support::GraphApi api(gpu());
  if (!api.missing().empty()) return skip("replay with other data", api.missing());
  const support::Stream stream(gpu());
  Work first(gpu(), kCausal), second(gpu(), kFull);
  first.refill(1);
  second.refill(1);
  fa4_context* context = test::device().context(0);  // made before: a capture may not load a module
  fa4_status status[2] = {};
  const support::Graph graph(gpu(), api, stream, [&] {
    const fa4_forward_params params[] = {first.params(stream.get()), second.params(stream.get())};
    for (int i : {0, 1}) status[i] = fa4_forward(context, &params[i]);
  });
  INFO(fa4_last_error());
  REQUIRE(status[0] == FA4_OK);
  REQUIRE(status[1] == FA4_OK);
  CHECK(first.untouched());  // captured, not launched
  CHECK(second.untouched());
  for (const uint64_t seed : {2, 3, 4}) {
    first.refill(seed);
    second.refill(seed + 10);
    graph.launch(stream);
    stream.synchronize();
    CHECK(first.verdict() == "");
    CHECK(second.verdict() == "");
  }
}

TEST_CASE("threads share a context, each with its stream", "[calls]") {
  const int rounds = test::device().simulated() ? 2 : 50;
  fa4_context* context = test::device().context(0);
  const CUcontext current = current_context();
  struct Thread {
    Work work;
    support::Stream stream{gpu()};
    std::vector<uint16_t> first;
    std::string wrong;
  };
  Thread all[] = {{{gpu(), kCausal}, support::Stream(gpu()), {}, ""},
                  {{gpu(), kFull}, support::Stream(gpu()), {}, ""}};
  std::vector<std::thread> threads;
  for (Thread& t : all) t.work.refill(uint64_t(1 + (&t - all)));
  for (Thread& t : all)
    threads.emplace_back([&] {
      gpu().driver().cuCtxSetCurrent(current);
      const fa4_forward_params params = t.work.params(t.stream.get());
      for (int round = 0; round < rounds && t.wrong.empty(); ++round)
        if (fa4_forward(context, &params) != FA4_OK) t.wrong = fa4_last_error();
      if (t.wrong.empty() && gpu().driver().cuStreamSynchronize(t.stream.get()) != CUDA_SUCCESS)
        t.wrong = "cuStreamSynchronize failed";
    });
  for (std::thread& thread : threads) thread.join();
  for (Thread& t : all) {
    CHECK(t.wrong == "");
    CHECK(t.work.verdict() == "");
  }
  // Each round of each thread on its own output: what the calls of two threads at once write is what one
  // writes.
  for (Thread& t : all) t.first = t.work.o();
  for (Thread& t : all) {
    t.work.refill(uint64_t(1 + (&t - all)));
    forward(t.work, t.stream.get());
    CHECK((t.work.o() == t.first));
  }
}

TEST_CASE("a call with another context current is refused and launches nothing", "[calls]") {
  const support::Stream stream(gpu());
  Work work(gpu(), kCausal);
  work.refill(5);
  fa4_context* context = test::device().context(0);
  const fa4_forward_params params = work.params(stream.get());
  const CUcontext mine = current_context();
  {
    const OtherContext other;
    CHECK(fa4_forward(context, &params) == FA4_ERROR_NO_DEVICE);
    const std::string sentence = fa4_last_error();
    INFO(sentence);
    CHECK(sentence.find("current CUDA context is " + pointer_text(other.get())) != std::string::npos);
    CHECK(sentence.find("created in " + pointer_text(mine)) != std::string::npos);
    gpu().synchronize();  // that context
  }
  REQUIRE(current_context() == mine);
  CHECK(work.untouched());
  gpu().driver().cuCtxSetCurrent(nullptr);
  CHECK(fa4_forward(context, &params) == FA4_ERROR_NO_DEVICE);
  CHECK(std::string(fa4_last_error()).find("no current CUDA context") != std::string::npos);
  gpu().driver().cuCtxSetCurrent(mine);
  CHECK(work.untouched());
  forward(work, stream.get());
  stream.synchronize();
  CHECK(work.verdict() == "");
}

TEST_CASE("a launch that was refused before does not disturb a call", "[calls]") {
  // An entry, and more threads than a CTA may have.
  constexpr char kEmpty[] =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry empty()\n{\n  ret;\n}\n";
  const support::Stream stream(gpu());
  Work work(gpu(), kFull);
  work.refill(6);
  CUmodule module = nullptr;
  CUfunction empty = nullptr;
  gpu().check(gpu().driver().cuModuleLoadData(&module, kEmpty), "cuModuleLoadData");
  gpu().check(gpu().driver().cuModuleGetFunction(&empty, module, "empty"), "cuModuleGetFunction");
  CHECK(gpu().driver().cuLaunchKernel(empty, 1, 1, 1, 4096, 1, 1, 0, stream.get(), nullptr, nullptr) !=
        CUDA_SUCCESS);
  fa4_forward_params bad = work.params(stream.get());
  bad.q.data += 8;
  CHECK(fa4_forward(test::device().context(0), &bad) == FA4_ERROR_INVALID_ARGUMENT);
  CHECK(work.untouched());
  forward(work, stream.get());
  stream.synchronize();
  CHECK(work.verdict() == "");
  gpu().driver().cuModuleUnload(module);
}

TEST_CASE("a capture that was abandoned before does not disturb a call", "[calls]") {
  const support::GraphApi api(gpu());
  if (!api.missing().empty()) return skip("an abandoned capture", api.missing());
  const support::Stream stream(gpu());
  Work work(gpu(), kCausal);
  work.refill(7);
  const fa4_forward_params params = work.params(stream.get());
  fa4_context* context = test::device().context(0);
  CUgraph graph = nullptr;
  SECTION("ended, and its graph thrown away") {
    gpu().check(api.cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL),
                "cuStreamBeginCapture");
    CHECK(fa4_forward(context, &params) == FA4_OK);
    gpu().check(api.cuStreamEndCapture(stream.get(), &graph), "cuStreamEndCapture");
    api.cuGraphDestroy(graph);
  }
  SECTION("invalidated by a call that may not be captured") {
    gpu().check(api.cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL),
                "cuStreamBeginCapture");
    CHECK(fa4_forward(context, &params) == FA4_OK);
    CHECK(gpu().driver().cuStreamSynchronize(stream.get()) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(fa4_forward(context, &params) ==
          FA4_ERROR_DRIVER);  // the stream takes nothing until the capture is ended
    const std::string sentence = fa4_last_error();
    INFO(sentence);
    CHECK(sentence.find("cuLaunchKernel failed with error") == 0);
    CHECK(api.cuStreamEndCapture(stream.get(), &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(graph == nullptr);
  }
  CHECK(work.untouched());
  forward(work, stream.get());
  stream.synchronize();
  CHECK(work.verdict() == "");
}

TEST_CASE("two GPUs have a context each, and neither takes the other's calls", "[calls]") {
  if (test::device().simulated()) return skip("two GPUs", "there is one simulated GPU");
  int version = 0, second = -1;
  const std::vector<support::Gpu::Properties> devices = support::Gpu::list(gpu().library(), &version);
  CUdevice first = 0;
  gpu().check(gpu().driver().cuCtxGetDevice(&first), "cuCtxGetDevice");
  for (size_t i = 0; i < devices.size(); ++i)
    if (int(i) != first && devices[i].major == gpu().properties().major) second = int(i);
  if (second < 0) return skip("two GPUs", "there is one GPU of this architecture");

  const CUcontext here = current_context();
  Work work(gpu(), kCausal);
  work.refill(8);
  const support::Stream stream(gpu());
  {
    support::AttentionDevice other(gpu().library(), second);  // its context is current from here on
    const CUcontext there = current_context();
    REQUIRE(there != here);
    Work other_work(other.gpu(), kFull);
    other_work.refill(9);
    const support::Stream other_stream(other.gpu());
    const fa4_forward_params params = work.params(stream.get()),
                             other_params = other_work.params(other_stream.get());
    fa4_context *mine = test::device().context(0), *theirs = other.context(0);

    CHECK(fa4_forward(mine, &params) == FA4_ERROR_NO_DEVICE);  // the other device's context is current
    CHECK(std::string(fa4_last_error()).find("created in " + pointer_text(here)) != std::string::npos);
    CHECK(fa4_forward(theirs, &other_params) == FA4_OK);
    CHECK(other_work.verdict() == "");
    other_work.refill(10);

    gpu().driver().cuCtxSetCurrent(here);
    CHECK(fa4_forward(theirs, &other_params) == FA4_ERROR_NO_DEVICE);
    CHECK(std::string(fa4_last_error()).find("created in " + pointer_text(there)) != std::string::npos);
    CHECK(work.untouched());
    CHECK(fa4_forward(mine, &params) == FA4_OK);
    CHECK(work.verdict() == "");
    gpu().driver().cuCtxSetCurrent(there);
    CHECK(other_work.untouched());
  }
  gpu().driver().cuCtxSetCurrent(here);
}
