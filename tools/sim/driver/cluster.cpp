// SPDX-License-Identifier: Apache-2.0
// Attributes of launches and clusters: how large they are, and how many of them a device holds.
#include <algorithm>

#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

namespace {

constexpr uint32_t kPortableSize = 8, kLargestSize = 16;  // blocks

uint64_t product(const std::array<uint32_t, 3>& v) {
  return uint64_t{v[0]} * v[1] * v[2];
}

// What the two questions about occupancy have in common: the clusters that the configuration asks for, and
// the blocks of it that an SM holds.
CUresult ask(CUfunction handle, const CUlaunchConfig* config, const void* result,
             std::array<uint32_t, 3>* cluster, uint32_t* blocks, uint32_t* largest) {
  if (config == nullptr || result == nullptr)
    return fail(CUDA_ERROR_INVALID_VALUE, "the launch configuration or the pointer for the result is null");
  std::shared_ptr<Function> function;
  if (CUresult r = find_function(handle, &function)) return r;
  const std::array<uint32_t, 3> grid{config->gridDimX, config->gridDimY, config->gridDimZ},
      block{config->blockDimX, config->blockDimY, config->blockDimZ};
  if (product(grid) == 0 || product(block) == 0)
    return fail(CUDA_ERROR_INVALID_VALUE,
                "grid " + triple(grid) + ", block " + triple(block) + ": none may be 0");
  if (config->numAttrs > 0 && config->attrs == nullptr)
    return fail(CUDA_ERROR_INVALID_VALUE, "launch attributes are announced but their array is null");
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (CUresult r = take_attribute(config->attrs[i], cluster)) return r;
  if (CUresult r = resolve_cluster(*function, grid, true, cluster)) return r;
  *blocks = blocks_per_sm(*function, product(block), config->sharedMemBytes);
  *largest = function->large_clusters ? kLargestSize : kPortableSize;
  return CUDA_SUCCESS;
}

}  // namespace

std::string fa4::sim::driver::triple(const std::array<uint32_t, 3>& v) {
  std::string text = std::to_string(v[0]);
  for (int d = 1; d < 3; ++d) text.append(", ").append(std::to_string(v[d]));
  return text.insert(0, 1, '(').append(")");
}

CUresult fa4::sim::driver::take_attribute(const CUlaunchAttribute& attribute,
                                          std::array<uint32_t, 3>* cluster) {
  switch (attribute.id) {
    // Hints, and permissions to overlap that running one launch after the other makes no use of.
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      if (attribute.value.cooperative == 0) return CUDA_SUCCESS;
      return fail(CUDA_ERROR_NOT_SUPPORTED, "cooperative launches are not simulated");
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& c = attribute.value.clusterDim;
      *cluster = {c.x, c.y, c.z};
      return CUDA_SUCCESS;
    }
    default:
      return fail(CUDA_ERROR_NOT_SUPPORTED, text("launch attribute is not simulated: ", attribute.id));
  }
}

CUresult fa4::sim::driver::resolve_cluster(const Function& function, const std::array<uint32_t, 3>& grid,
                                           bool any_size, std::array<uint32_t, 3>* cluster) {
  const EntryInfo& entry = *function.entry;
  const auto refuse = [&](const std::string& why) {
    return fail(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                "launch of " + entry.name + " in clusters of " + triple(*cluster) + ": " + why);
  };
  const std::array<uint32_t, 3> none{0, 0, 0};
  std::array<uint32_t, 3> required{};
  for (int d = 0; d < 3; ++d) required[d] = static_cast<uint32_t>(function.cluster[d]);
  const bool given = *cluster != none;
  if (!given) *cluster = required;
  if (*cluster == none) {
    if (entry.explicit_cluster)
      return refuse(
          "the entry wants their size to be given (.explicitcluster, __cluster_dims__ without a size)");
    return CUDA_SUCCESS;
  }
  for (int d = 0; d < 3; ++d) {
    if ((*cluster)[d] == 0) return refuse("no extent may be 0");
    if (grid[d] % (*cluster)[d] != 0) return refuse("the grid " + triple(grid) + " is no multiple of it");
  }
  if (required != none && *cluster != required) return refuse("the function requires " + triple(required));
  const uint64_t size = product(*cluster);
  if (entry.max_cluster_rank != 0 && size > entry.max_cluster_rank)
    return refuse("the entry allows " + std::to_string(entry.max_cluster_rank) + " blocks (.maxclusterrank)");
  if (!function.large_clusters && size > kPortableSize)
    return refuse("more than 8 blocks need CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED");
  if (!any_size && size > kLargestSize) return refuse("16 blocks are the most");
  return CUDA_SUCCESS;
}

// As if every SM could be in a cluster with every other.
FA4SIM_EXPORT CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                                            const CUlaunchConfig* config) {
  return in_context([&](CUcontext) -> CUresult {
    std::array<uint32_t, 3> cluster{};
    uint32_t blocks = 0, largest = 0;
    if (CUresult r = ask(function, config, clusters, &cluster, &blocks, &largest)) return r;
    const uint64_t size = product(cluster), all = uint64_t{blocks} * state().config.sm_count;
    *clusters = size == 0 ? 0 : static_cast<int>(std::min<uint64_t>(all / size, INT32_MAX));
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                                                  const CUlaunchConfig* config) {
  return in_context([&](CUcontext) -> CUresult {
    std::array<uint32_t, 3> cluster{};
    uint32_t blocks = 0, largest = 0;
    if (CUresult r = ask(function, config, size, &cluster, &blocks, &largest)) return r;
    const uint32_t all = blocks * state().config.sm_count;
    *size = 0;
    for (uint32_t s = largest; s > 0 && *size == 0; s /= 2)
      if (s <= all) *size = static_cast<int>(s);
    return CUDA_SUCCESS;
  });
}
