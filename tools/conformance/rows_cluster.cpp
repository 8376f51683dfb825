// SPDX-License-Identifier: Apache-2.0
// Clusters and distributed shared memory.
#include <cuda.h>

#include <cstdio>

#include "row.h"

namespace fa4::conformance {
namespace {

struct Extent {
  uint32_t x, y, z;
};

std::string text_of(const Extent& e) {
  return std::to_string(e.x) + "x" + std::to_string(e.y) + "x" + std::to_string(e.z);
}

// Several clusters along each dimension that the cluster extends in.
void in_clusters(Row& row, const Extent& cluster, uint32_t words_each, uint32_t block = 128) {
  row.grid = cluster.x * 2, row.grid_y = cluster.y * 2, row.grid_z = cluster.z;
  row.cluster[0] = cluster.x, row.cluster[1] = cluster.y, row.cluster[2] = cluster.z;
  row.block = block;
  row.output_elements = row.grid * row.grid_y * row.grid_z * words_each;
}

}  // namespace

void add_cluster_rows(Table& t) {
  t.family({"clusters", "9.7.9.23, 9.7.9.24, 10", ""});
  const std::string place =
      "a CTA's rank in its cluster counts x first; the cluster's id and extents are those of the launch";
  for (const Extent& e : {Extent{1, 1, 1},
                          {2, 1, 1},
                          {1, 2, 1},
                          {1, 1, 4},
                          {2, 2, 1},
                          {2, 2, 2},
                          {3, 1, 1},
                          {1, 5, 1},
                          {8, 1, 1},
                          {4, 1, 2}}) {
    Row& row = t.kernel("cluster", "place", "cluster registers: " + text_of(e), place);
    in_clusters(row, e, 20, 32);
  }
  {
    Row& row = t.kernel("cluster", "place", "cluster registers: no cluster",
                        "a CTA without a cluster is one of its own, which nobody asked for");
    in_clusters(row, {2, 1, 1}, 20, 32);
    row.cluster[0] = 0;
  }
  for (const Extent& e : {Extent{1, 1, 1}, {2, 1, 1}, {2, 2, 2}}) {
    Row& row = t.kernel("cluster", "addresses", "mapa, getctarank, isspacep, cvta: " + text_of(e),
                        "the rank lies above bit 24 of a shared address, in the own CTA's addresses too; "
                        "generic addresses agree");
    in_clusters(row, e, 64, 64);
  }

  t.family({"distributed shared memory", "9.7.9", ""});
  for (const Extent& e : {Extent{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {2, 2, 2}}) {
    in_clusters(t.kernel("cluster", "stores_of_all_widths", "st.shared::cluster: " + text_of(e),
                         "stores of all widths reach another CTA, by generic addresses too"),
                e, 128 * 12);
    in_clusters(t.kernel("cluster", "loads_of_all_widths", "ld.shared::cluster: " + text_of(e),
                         "loads of all widths see another CTA's memory, by generic addresses too"),
                e, 128 * 12);
    in_clusters(t.kernel("cluster", "atomics", "atom, red.shared::cluster: " + text_of(e),
                         "atomic operations of all CTAs meet in one CTA's memory"),
                e, 32);
    in_clusters(t.kernel("cluster", "atomics_in_turn", "atom.shared::cluster in turn: " + text_of(e),
                         "an atomic operation in another CTA's memory returns what was there"),
                e, 8);
  }

  t.family({"barrier.cluster", "9.7.13.3", ""});
  for (const Extent& e : {Extent{1, 1, 1}, {2, 1, 1}, {2, 2, 2}}) {
    in_clusters(t.kernel("cluster", "barrier_phases", "barrier.cluster: " + text_of(e),
                         "nobody passes before all have arrived, phase after phase"),
                e, 128);
    in_clusters(t.kernel("cluster", "barrier_relaxed", "barrier.cluster.arrive.relaxed: " + text_of(e),
                         "a fence before a relaxed arrival releases"),
                e, 128);
    in_clusters(t.kernel("cluster", "barrier_diverged", "barrier.cluster, diverged: " + text_of(e),
                         "lanes may come on different ways; threads that have exited are not waited for"),
                e, 128);
  }

  t.family({"mbarrier of another CTA", "9.7.13.15", ""});
  for (const Extent& e : {Extent{1, 1, 1}, {2, 1, 1}, {2, 2, 2}}) {
    in_clusters(t.kernel("cluster", "remote_arrivals", "mbarrier, remote arrivals: " + text_of(e),
                         "arrivals, counts and bytes of other CTAs complete a phase"),
                e, 256);
    in_clusters(t.kernel("cluster", "remote_drops", "mbarrier.arrive_drop, remote: " + text_of(e),
                         "a drop by another CTA takes an arrival from later phases"),
                e, 128);
    in_clusters(t.kernel("cluster", "ring", "mbarrier, ring through a cluster: " + text_of(e),
                         "full and empty barriers in neighbouring CTAs hand over two stages"),
                e, 32, 64);
  }

  t.family({"st.async, red.async", "9.7.9.12, 9.7.13.7", ""});
  for (const Extent& e : {Extent{1, 1, 1}, {2, 1, 1}, {2, 2, 2}}) {
    in_clusters(t.kernel("cluster", "st_async", "st.async: " + text_of(e),
                         "elements and vectors arrive with as many bytes on the mbarrier"),
                e, 128 * 12);
    in_clusters(t.kernel("cluster", "red_async", "red.async: " + text_of(e),
                         "every reduction, with as many bytes on the mbarrier as its type has"),
                e, 32);
  }

  t.family({"bulk copies between CTAs", "9.7.9.25.4", ""});
  struct Copy {
    uint32_t bytes, from, to;
  };
  for (const Copy& c : {Copy{16, 64, 2048}, {1024, 1024, 4096}, {2000, 80, 4112}, {4096, 64, 4160}}) {
    for (const Extent& e : {Extent{1, 1, 1}, {2, 1, 1}, {4, 1, 1}}) {
      Row& row = t.kernel(
          "cluster", "copy_to_next",
          "cp.async.bulk.shared::cluster.shared::cta: " + std::to_string(c.bytes) + " bytes, " + text_of(e),
          "bytes go to the same CTA as their completion");
      in_clusters(row, e, 2304);
      row.dynamic_shared = row.words[5] = 9216;
      row.words[0] = c.bytes, row.words[1] = c.from, row.words[2] = c.to;
    }
  }
  const char* const reductions[] = {"add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.u32",
                                    "max.s32", "inc.u32", "dec.u32", "and.b32", "or.b32",  "xor.b32"};
  for (uint32_t i = 0; i < 12; ++i) {
    Row& row = t.kernel("cluster", "reduce_into_first",
                        std::string("cp.reduce.async.bulk.shared::cluster.") + reductions[i],
                        "all CTAs reduce into one CTA's memory");
    // inc and dec depend on the order when several CTAs reduce
    in_clusters(row, {i == 7 || i == 8 ? 1u : 4u, 1, 1}, 256, 256);
    row.words[0] = i;
  }

  t.family({"multicast", "9.7.9.25.4.1, 9.7.9.27.1.2", ""});
  struct Masks {
    uint32_t cluster, loaders, targets;
  };
  const Masks masks[] = {{1, 1, 1},   {2, 1, 3},       {2, 2, 1},  {2, 3, 3},   {2, 1, 0},
                         {2, 3, 0},   {4, 1, 15},      {4, 5, 10}, {4, 15, 15}, {4, 8, 6},
                         {8, 1, 255}, {8, 0x81, 0x5A}, {4, 15, 0}};
  for (const Masks& m : masks) {
    char note[96];
    std::snprintf(note, sizeof note, "cluster of %u, from 0x%x to 0x%x", m.cluster, m.loaders, m.targets);
    const std::string where = m.targets ? note : std::string(note) + " (to the next, no multicast)";
    {
      Row& row = t.kernel("cluster", "multicast_bulk", "cp.async.bulk.multicast::cluster: " + where,
                          "data and signal go to the same offsets of every CTA in the mask");
      in_clusters(row, {m.cluster, 1, 1}, 2560);
      row.dynamic_shared = row.words[5] = 10240;
      row.words[0] = 512, row.words[1] = 128, row.words[2] = m.loaders, row.words[3] = m.targets,
      row.words[4] = 1024;
    }
    for (uint32_t swizzle : {0u, 3u}) {
      Row& row = t.kernel(
          "cluster", "multicast_box",
          "cp.async.bulk.tensor.multicast::cluster: " + where + (swizzle ? ", 128B" : ""),
          "a box, its part outside the tensor too, goes to the same offsets of every CTA in the mask");
      in_clusters(row, {m.cluster, 1, 1}, 2560);
      row.dynamic_shared = row.words[5] = 10240;
      Map map;
      map.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
      map.rank = 2;
      map.extents[0] = 56, map.extents[1] = 16;
      map.strides[0] = 128;
      map.box[0] = 64, map.box[1] = 8;
      map.swizzle = swizzle;
      row.map = map;
      row.words[0] = 0, row.words[1] = 2, row.words[2] = m.loaders, row.words[3] = m.targets,
      row.words[4] = 1024;
      row.words[6] = 1024, row.words[7] = 1024;
    }
  }
  for (uint32_t n : {1u, 2u, 4u, 8u}) {
    Row& row = t.kernel("cluster", "multicast_pipeline", "multicast pipeline of " + std::to_string(n),
                        "consumers of all CTAs free a stage at the CTA that loads for all");
    in_clusters(row, {n, 1, 1}, 64, 96);
  }
}

}  // namespace fa4::conformance
