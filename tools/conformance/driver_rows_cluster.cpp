// SPDX-License-Identifier: Apache-2.0
// What the driver says to clusters: launches, attributes of functions, occupancy, and faults of kernels in
// clusters.
#include <vector>

#include "driver_rows.h"

namespace fa4::conformance {
namespace {

using support::Gpu;

const char* const kEntries =
    ".visible .entry none() { ret; }\n"
    ".visible .entry pair() .reqnctapercluster 2, 1, 1 { ret; }\n"
    ".visible .entry quad() .reqnctapercluster 2, 2, 1 { ret; }\n"
    ".visible .entry asks() .explicitcluster { ret; }\n"
    ".visible .entry upto() .explicitcluster .maxclusterrank 4 { ret; }\n"
    ".visible .entry threads() .reqntid 64, 1, 1 .reqnctapercluster 2, 1, 1 { ret; }\n";

// A value that was asked for, apart from the codes of errors.
constexpr int kValue = 1000000;

// A function of a module that lives as long as this does.
class Entry {
 public:
  Entry(Gpu& gpu, const char* name, const std::string& body = kEntries) : gpu_(gpu) {
    const auto& p = gpu.properties();
    const std::string text =
        ".version 8.6\n.target sm_" + std::to_string(10 * p.major + p.minor) + "\n.address_size 64\n" + body;
    status = gpu.driver().cuModuleLoadData(&module_, text.c_str());
    if (status == CUDA_SUCCESS) status = gpu.driver().cuModuleGetFunction(&function, module_, name);
  }
  ~Entry() {
    if (module_) gpu_.driver().cuModuleUnload(module_);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  CUfunction function = nullptr;
  CUresult status;

 private:
  Gpu& gpu_;
  CUmodule module_ = nullptr;
};

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};
struct Try {
  const char* entry = "none";
  Extent grid{4, 1, 1};
  std::vector<Extent> clusters;  // attributes
  unsigned block = 32, shared = 0;
  int allow_large = -1;  // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, -1: not set
};

struct Config {
  explicit Config(const Try& t) : attributes(t.clusters.size()) {
    for (size_t i = 0; i < attributes.size(); ++i) {
      attributes[i].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attributes[i].value.clusterDim = {t.clusters[i].x, t.clusters[i].y, t.clusters[i].z};
    }
    launch = {t.grid.x, t.grid.y, t.grid.z, t.block,           1,
              1,        t.shared, nullptr,  attributes.data(), unsigned(attributes.size())};
  }
  std::vector<CUlaunchAttribute> attributes;
  CUlaunchConfig launch;
};

CUresult allow(Gpu& gpu, const Entry& entry, const Try& t) {
  if (t.allow_large < 0) return CUDA_SUCCESS;
  return gpu.driver().cuFuncSetAttribute(entry.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                         t.allow_large);
}

CUresult launch(Gpu& gpu, const Try& t) {
  Entry entry(gpu, t.entry);
  if (entry.status != CUDA_SUCCESS) return entry.status;
  if (const CUresult r = allow(gpu, entry, t)) return r;
  Config config(t);
  const CUresult r = gpu.driver().cuLaunchKernelEx(&config.launch, entry.function, nullptr, nullptr);
  return r != CUDA_SUCCESS ? r : gpu.driver().cuCtxSynchronize();
}

// A kernel of two CTAs of one warp in a cluster, run to its end; %rank and %r, the address of 64 bytes of
// shared memory.
CUresult run(Gpu& gpu, const std::string& body) {
  Entry entry(
      gpu, "k",
      ".visible .entry k(.param .u64 out) .reqnctapercluster 2, 1, 1 { .reg .b64 %a, %b; .reg .b32 %r, %s, "
      "%rank; .reg .pred %p;\n"
      ".shared .align 8 .b8 s[64];\nmov.u32 %s, %tid.x; setp.eq.u32 %p, %s, 0; @%p st.shared.u32 [s], 5; "
      "ld.param.u64 %a, [out]; mov.u32 %rank, %cluster_ctarank; mov.u32 %r, s; setp.eq.u32 %p, %rank, 0;\n"
      "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" +
          body + "\nret; }\n");
  if (entry.status != CUDA_SUCCESS) return entry.status;
  CUdeviceptr memory = 0;
  gpu.driver().cuMemAlloc(&memory, 1024);
  void* params[] = {&memory};
  CUresult r = gpu.driver().cuLaunchKernel(entry.function, 2, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr);
  if (r == CUDA_SUCCESS) r = gpu.driver().cuCtxSynchronize();
  if (r == CUDA_SUCCESS) gpu.driver().cuMemFree(memory);
  return r;
}

}  // namespace

void add_cluster_calls(std::vector<DriverRow>& rows) {
  const auto add = [&](std::string name, std::function<CUresult(Gpu&)> call, bool faults = false) {
    rows.push_back({std::move(name), std::move(call), {}, faults});
  };
  // launches
  const std::pair<const char*, Try> launches[] = {
      {"no attributes", {}},
      {"2, 1, 1", {"none", {4, 1, 1}, {{2, 1, 1}}}},
      {"1, 1, 1", {"none", {4, 1, 1}, {{1, 1, 1}}}},
      {"3, 1, 1 in a grid of 6", {"none", {6, 1, 1}, {{3, 1, 1}}}},
      {"2, 1, 1 in a grid of 3", {"none", {3, 1, 1}, {{2, 1, 1}}}},
      {"2, 1, 1 in a grid of 1", {"none", {1, 1, 1}, {{2, 1, 1}}}},
      {"1, 2, 1 in a grid of 4 x 1", {"none", {4, 1, 1}, {{1, 2, 1}}}},
      {"0, 1, 1", {"none", {4, 1, 1}, {{0, 1, 1}}}},
      {"0, 0, 0", {"none", {4, 1, 1}, {{0, 0, 0}}}},
      {"2, 0, 0", {"none", {4, 1, 1}, {{2, 0, 0}}}},
      {"8, 1, 1", {"none", {8, 1, 1}, {{8, 1, 1}}}},
      {"2, 2, 2", {"none", {2, 2, 2}, {{2, 2, 2}}}},
      {"9, 1, 1", {"none", {9, 1, 1}, {{9, 1, 1}}}},
      {"16, 1, 1", {"none", {16, 1, 1}, {{16, 1, 1}}}},
      {"16, 1, 1, allowed", {"none", {16, 1, 1}, {{16, 1, 1}}, 32, 0, 1}},
      {"4, 2, 2, allowed", {"none", {4, 2, 2}, {{4, 2, 2}}, 32, 0, 1}},
      {"17, 1, 1, allowed", {"none", {17, 1, 1}, {{17, 1, 1}}, 32, 0, 1}},
      {"32, 1, 1, allowed", {"none", {32, 1, 1}, {{32, 1, 1}}, 32, 0, 1}},
      {"16, 1, 1, allowed and forbidden again", {"none", {16, 1, 1}, {{16, 1, 1}}, 32, 0, 0}},
      {"65536, 65536, 1", {"none", {65536, 65535, 1}, {{65536, 65536, 1}}}},
      {"2, 1, 1, then 4, 1, 1", {"none", {4, 1, 1}, {{2, 1, 1}, {4, 1, 1}}}},
      {"4, 1, 1, then 3, 1, 1", {"none", {4, 1, 1}, {{4, 1, 1}, {3, 1, 1}}}},
      {"3, 1, 1, then 4, 1, 1", {"none", {4, 1, 1}, {{3, 1, 1}, {4, 1, 1}}}},
      {"2, 1, 1 with 1024 threads", {"none", {4, 1, 1}, {{2, 1, 1}}, 1024}},
      {"2, 1, 1 with 1025 threads", {"none", {4, 1, 1}, {{2, 1, 1}}, 1025}},
      {"2, 1, 1 with 48 KiB and 1 byte", {"none", {4, 1, 1}, {{2, 1, 1}}, 32, 49153}},
      {"an entry that requires 2, 1, 1", {"pair", {4, 1, 1}, {}}},
      {"an entry that requires 2, 1, 1 in a grid of 3", {"pair", {3, 1, 1}, {}}},
      {"an entry that requires 2, 1, 1, with 2, 1, 1", {"pair", {4, 1, 1}, {{2, 1, 1}}}},
      {"an entry that requires 2, 1, 1, with 1, 1, 1", {"pair", {4, 1, 1}, {{1, 1, 1}}}},
      {"an entry that requires 2, 1, 1, with 4, 1, 1", {"pair", {4, 1, 1}, {{4, 1, 1}}}},
      {"an entry that requires 2, 1, 1, with 0, 0, 0", {"pair", {4, 1, 1}, {{0, 0, 0}}}},
      {"an entry that requires 2, 2, 1, with 4, 1, 1", {"quad", {4, 4, 1}, {{4, 1, 1}}}},
      {"an entry that requires 2, 2, 1", {"quad", {4, 4, 1}, {}}},
      {"an entry that asks for a size, without one", {"asks", {4, 1, 1}, {}}},
      {"an entry that asks for a size, with 4, 1, 1", {"asks", {4, 1, 1}, {{4, 1, 1}}}},
      {"an entry of at most 4, with 4, 1, 1", {"upto", {8, 1, 1}, {{4, 1, 1}}}},
      {"an entry of at most 4, with 8, 1, 1", {"upto", {8, 1, 1}, {{8, 1, 1}}}},
      {"an entry of at most 4, without", {"upto", {8, 1, 1}, {}}},
      {"an entry that requires 64 threads and 2, 1, 1", {"threads", {4, 1, 1}, {}, 64}},
      {"an entry that requires 64 threads, with 32", {"threads", {4, 1, 1}, {}, 32}},
  };
  for (const auto& [name, t] : launches)
    add(std::string("cuLaunchKernelEx: cluster ") + name, [t = t](Gpu& g) { return launch(g, t); });
  add("cuLaunchKernelEx: null configuration", [](Gpu& g) {
    Entry e(g, "none");
    return g.driver().cuLaunchKernelEx(nullptr, e.function, nullptr, nullptr);
  });
  add("cuLaunchKernelEx: null attributes", [](Gpu& g) {
    Entry e(g, "none");
    Config c(Try{});
    c.launch.numAttrs = 1;
    c.launch.attrs = nullptr;
    return g.driver().cuLaunchKernelEx(&c.launch, e.function, nullptr, nullptr);
  });
  for (const auto& [name, grid] : {std::pair{"4", 4u}, {"3", 3u}}) {
    add(std::string("cuLaunchKernel: an entry that requires clusters of 2, in a grid of ") + name,
        [grid = grid](Gpu& g) {
          Entry e(g, "pair");
          const CUresult r =
              g.driver().cuLaunchKernel(e.function, grid, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
          return r ? r : g.driver().cuCtxSynchronize();
        });
  }
  add("cuLaunchKernel: an entry that asks for a size of clusters", [](Gpu& g) {
    Entry e(g, "asks");
    const CUresult r = g.driver().cuLaunchKernel(e.function, 4, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
    return r ? r : g.driver().cuCtxSynchronize();
  });

  // attributes of functions
  const std::pair<const char*, CUfunction_attribute> attributes[] = {
      {"size must be set", CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET},
      {"required width", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH},
      {"required height", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT},
      {"required depth", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH},
      {"large size allowed", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED},
      {"scheduling", CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}};
  for (const char* entry : {"none", "pair", "quad", "asks", "upto"}) {
    for (const auto& [name, attribute] : attributes) {
      add(std::string("cuFuncGetAttribute: cluster ") + name + " of " + entry,
          [entry, attribute = attribute](Gpu& g) {
            Entry e(g, entry);
            int value = -1;
            const CUresult r = g.driver().cuFuncGetAttribute(&value, attribute, e.function);
            return r ? r : CUresult(kValue + value);
          });
    }
  }
  for (const char* entry : {"none", "pair"}) {
    for (const auto& [name, attribute] : attributes) {
      for (int value : {-1, 0, 1, 2, 3, 8, 17}) {
        add(std::string("cuFuncSetAttribute: cluster ") + name + " of " + entry + " to " +
                std::to_string(value),
            [entry, attribute = attribute, value](Gpu& g) {
              Entry e(g, entry);
              if (const CUresult r = g.driver().cuFuncSetAttribute(e.function, attribute, value)) return r;
              int now = -1;
              const CUresult r = g.driver().cuFuncGetAttribute(&now, attribute, e.function);
              return r ? r : CUresult(kValue + now);
            });
      }
    }
  }
  // A size set as an attribute of the function.
  struct Set {
    const char* name;
    int width, height, depth;
    Try launch;
  };
  const Set sets[] = {
      {"2 x 1 x 1 set", 2, 1, 1, {"none", {4, 1, 1}, {}}},
      {"2 x 1 x 1 set, in a grid of 3", 2, 1, 1, {"none", {3, 1, 1}, {}}},
      {"2 x 1 x 1 set, with 2, 1, 1", 2, 1, 1, {"none", {4, 1, 1}, {{2, 1, 1}}}},
      {"2 x 1 x 1 set, with 4, 1, 1", 2, 1, 1, {"none", {4, 1, 1}, {{4, 1, 1}}}},
      {"width 2 set", 2, 0, 0, {"none", {4, 1, 1}, {}}},
      {"width 2 set, in a grid of 3", 2, 0, 0, {"none", {3, 1, 1}, {}}},
      {"height 2 set, in a grid of 3", 0, 2, 0, {"none", {3, 1, 1}, {}}},
      {"16 x 1 x 1 set", 16, 1, 1, {"none", {16, 1, 1}, {}}},
      {"2 x 1 x 1 set for an entry that asks", 2, 1, 1, {"asks", {4, 1, 1}, {}}},
  };
  for (const Set& s : sets) {
    add(std::string("cuLaunchKernelEx: cluster ") + s.name, [s](Gpu& g) {
      Entry e(g, s.launch.entry);
      const std::pair<CUfunction_attribute, int> values[] = {
          {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, s.width},
          {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, s.height},
          {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, s.depth}};
      for (const auto& [attribute, value] : values) {
        if (value == 0) continue;
        if (const CUresult r = g.driver().cuFuncSetAttribute(e.function, attribute, value)) return r;
      }
      Config c(s.launch);
      const CUresult r = g.driver().cuLaunchKernelEx(&c.launch, e.function, nullptr, nullptr);
      return r ? r : g.driver().cuCtxSynchronize();
    });
  }

  // occupancy: of the number of clusters whether it is one, as it depends on the chip
  const std::pair<const char*, Try> occupancies[] = {
      {"2, 1, 1", {"none", {4, 1, 1}, {{2, 1, 1}}}},
      {"no attribute", {"none", {4, 1, 1}, {}}},
      {"2, 1, 1 in a grid of 3", {"none", {3, 1, 1}, {{2, 1, 1}}}},
      {"16, 1, 1", {"none", {16, 1, 1}, {{16, 1, 1}}}},
      {"16, 1, 1, allowed", {"none", {16, 1, 1}, {{16, 1, 1}}, 32, 0, 1}},
      {"17, 1, 1, allowed", {"none", {17, 1, 1}, {{17, 1, 1}}, 32, 0, 1}},
      {"0, 1, 1", {"none", {4, 1, 1}, {{0, 1, 1}}}},
      {"2, 1, 1 with 1025 threads", {"none", {4, 1, 1}, {{2, 1, 1}}, 1025}},
      {"2, 1, 1 with 0 threads", {"none", {4, 1, 1}, {{2, 1, 1}}, 0}},
      {"2, 1, 1 with 1 MiB", {"none", {4, 1, 1}, {{2, 1, 1}}, 32, 1 << 20}},
      {"2, 1, 1 with a grid of 0", {"none", {0, 1, 1}, {{2, 1, 1}}}},
      {"an entry that requires 2, 1, 1", {"pair", {4, 1, 1}, {}}},
      {"an entry that requires 2, 1, 1, with 4, 1, 1", {"pair", {4, 1, 1}, {{4, 1, 1}}}},
      {"an entry that asks", {"asks", {4, 1, 1}, {}}},
      {"an entry of at most 4", {"upto", {8, 1, 1}, {}}},
  };
  for (const auto& [name, t] : occupancies) {
    add(std::string("cuOccupancyMaxActiveClusters: ") + name, [t = t](Gpu& g) {
      Entry e(g, t.entry);
      if (const CUresult r = allow(g, e, t)) return r;
      Config c(t);
      int clusters = -1;
      const CUresult r = g.driver().cuOccupancyMaxActiveClusters(&clusters, e.function, &c.launch);
      return r ? r : CUresult(kValue + (clusters > 0));
    });
    add(std::string("cuOccupancyMaxPotentialClusterSize: ") + name, [t = t](Gpu& g) {
      Entry e(g, t.entry);
      if (const CUresult r = allow(g, e, t)) return r;
      Config c(t);
      int size = -1;
      const CUresult r = g.driver().cuOccupancyMaxPotentialClusterSize(&size, e.function, &c.launch);
      return r ? r : CUresult(kValue + size);
    });
  }
  add("cuOccupancyMaxActiveClusters: null result", [](Gpu& g) {
    Entry e(g, "none");
    Config c(Try{"none", {4, 1, 1}, {{2, 1, 1}}});
    return g.driver().cuOccupancyMaxActiveClusters(nullptr, e.function, &c.launch);
  });
  add("cuOccupancyMaxActiveClusters: null configuration", [](Gpu& g) {
    Entry e(g, "none");
    int clusters;
    return g.driver().cuOccupancyMaxActiveClusters(&clusters, e.function, nullptr);
  });
  add("cuOccupancyMaxPotentialClusterSize: null result", [](Gpu& g) {
    Entry e(g, "none");
    Config c(Try{});
    return g.driver().cuOccupancyMaxPotentialClusterSize(nullptr, e.function, &c.launch);
  });
  add("cuDeviceGetAttribute: cluster launch", [](Gpu& g) {
    int value = -1;
    const CUresult r = g.driver().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0);
    return r ? r : CUresult(kValue + value);
  });

  // faults of kernels
  const std::pair<const char*, const char*> kernels[] = {
      {"load from the next CTA",
       "xor.b32 %rank, %rank, 1; mapa.shared::cluster.u32 %s, %r, %rank; ld.shared::cluster.u32 %s, [%s]; "
       "st.global.u32 [%a], %s; barrier.cluster.arrive; barrier.cluster.wait;"},
      {"load from a rank beyond the cluster",
       "add.u32 %s, %r, 0x5000000; ld.shared::cluster.u32 %s, [%s]; st.global.u32 [%a], %s;"},
      {"store to a rank beyond the cluster", "add.u32 %s, %r, 0x5000000; st.shared::cluster.u32 [%s], 1;"},
      {"mapa to a rank beyond the cluster", "mapa.shared::cluster.u32 %s, %r, 7; st.global.u32 [%a], %s;"},
      {"load behind the end of another CTA's memory",
       "xor.b32 %rank, %rank, 1; mapa.shared::cluster.u32 %s, %r, %rank; add.u32 %s, %s, 0x40000; "
       "ld.shared::cluster.u32 %s, [%s]; st.global.u32 [%a], %s; barrier.cluster.arrive; "
       "barrier.cluster.wait;"},
      {"misaligned store to another CTA",
       "xor.b32 %rank, %rank, 1; mapa.shared::cluster.u32 %s, %r, %rank; st.shared::cluster.u32 [%s+2], 1; "
       "barrier.cluster.arrive; barrier.cluster.wait;"},
      {"load from a CTA that has exited",
       "@!%p exit; nanosleep.u32 900000; nanosleep.u32 900000; mapa.shared::cluster.u32 %s, %r, 1; "
       "ld.shared::cluster.u32 %s, [%s]; st.global.u32 [%a], %s;"},
      {"store to a CTA that has exited",
       "@!%p exit; nanosleep.u32 900000; nanosleep.u32 900000; mapa.shared::cluster.u32 %s, %r, 1; "
       "st.shared::cluster.u32 [%s], 1;"},
      {"arrival at a CTA that has exited",
       "mbarrier.init.shared::cta.b64 [s+8], 1; barrier.cluster.arrive; barrier.cluster.wait; @!%p exit; "
       "nanosleep.u32 900000; nanosleep.u32 900000; mapa.shared::cluster.u32 %s, %r, 1; "
       "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%s+8];"},
  };
  for (const auto& [name, body] : kernels) {
    add(
        std::string("kernel in a cluster: ") + name, [body = body](Gpu& g) { return run(g, body); }, true);
    const std::string_view text = name;
    if (text.starts_with("mapa")) rows.back().stricter = "an address of nobody's shared memory is of no use";
    if (text == "store to a CTA that has exited" || text.starts_with("arrival"))
      rows.back().stricter = "what is written to a CTA that has exited is lost";
  }
}

}  // namespace fa4::conformance
