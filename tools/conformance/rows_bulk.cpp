// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: tensor maps of ranks 1 to 5, bulk copies, and the older copies of single threads.
#include <cuda.h>

#include <tuple>

#include "row.h"

namespace fa4::conformance {
namespace {

constexpr uint32_t kElements = 16384;  // words of input
constexpr uint32_t kShared = 8192;     // bytes of dynamic shared memory

uint32_t bytes_of(uint32_t type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
    default:
      return 4;
  }
}

struct Shape {
  uint32_t type;
  std::vector<uint64_t> extents;
  std::vector<uint32_t> box;
  std::vector<int32_t> at;
  uint32_t swizzle = 0;
  std::vector<uint32_t> element_strides = {};
  uint32_t offset = 0;  // of the box in shared memory
  uint32_t fill = 0;
};

// Rows of `extents` packed with a pitch that is a multiple of 16 bytes and larger than the row.
void describe(Row& row, const Shape& s, bool over_output) {
  Map map;
  map.over_output = over_output;
  map.type = s.type;
  map.rank = uint32_t(s.extents.size());
  map.swizzle = s.swizzle;
  map.fill = s.fill;
  uint64_t pitch = (s.extents[0] * bytes_of(s.type) + 15) / 16 * 16 + 16, elements = 1;
  uint64_t box = bytes_of(s.type);
  for (uint32_t d = 0; d < map.rank; ++d) {
    map.extents[d] = s.extents[d];
    map.box[d] = s.box[d];
    map.element_strides[d] = d < s.element_strides.size() ? s.element_strides[d] : 1;
    if (d > 0) map.strides[d - 1] = pitch, pitch *= s.extents[d];
    box *= d == 0 ? s.box[d] : (s.box[d] + map.element_strides[d] - 1) / map.element_strides[d];
    row.words[d] = uint32_t(s.at[d]);
    elements *= s.extents[d];
  }
  row.map = map;
  row.words[5] = kShared;
  row.words[6] = s.offset;
  row.words[7] = uint32_t(box);
  row.elements = kElements;
  row.output_elements = kShared / 4;
  row.dynamic_shared = kShared;
}

std::string text_of(const Shape& s) {
  static const char* const types[] = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                      "f32", "f64", "bf16", "f32 ftz", "tf32", "tf32 ftz"};
  static const char* const swizzles[] = {"", ", 32B", ", 64B", ", 128B", ", 128B of 32B atoms"};
  std::string t = std::string(types[s.type]) + " box ";
  for (size_t d = 0; d < s.box.size(); ++d) t += (d ? "x" : "") + std::to_string(s.box[d]);
  t += " at ";
  for (size_t d = 0; d < s.at.size(); ++d) t += (d ? "," : "") + std::to_string(s.at[d]);
  t += swizzles[s.swizzle];
  if (!s.element_strides.empty()) {
    t += ", element strides ";
    for (size_t d = 0; d < s.element_strides.size(); ++d)
      t += (d ? "," : "") + std::to_string(s.element_strides[d]);
  }
  if (s.offset) t += ", at +" + std::to_string(s.offset);
  if (s.fill) t += ", NaN fill";
  return t;
}

constexpr uint32_t u8 = CU_TENSOR_MAP_DATA_TYPE_UINT8, u16 = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                   u32 = CU_TENSOR_MAP_DATA_TYPE_UINT32, s32 = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   u64 = CU_TENSOR_MAP_DATA_TYPE_UINT64, s64 = CU_TENSOR_MAP_DATA_TYPE_INT64,
                   f16 = CU_TENSOR_MAP_DATA_TYPE_FLOAT16, f32 = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                   f64 = CU_TENSOR_MAP_DATA_TYPE_FLOAT64, bf16 = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   f32_ftz = CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, tf32 = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
                   tf32_ftz = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;

std::vector<Shape> shapes() {
  std::vector<Shape> list = {
      // rank 1: inside, and over either end
      {f16, {1000}, {64}, {0}},    {f16, {1000}, {256}, {-8}}, {f16, {1000}, {64}, {968}},
      {f16, {1000}, {64}, {2000}}, {u8, {4000}, {256}, {16}},  {f32, {777}, {128}, {700}},
      {u64, {300}, {32}, {-2}},
  };
  // rank 2: every swizzle at every side
  const std::vector<int32_t> places[] = {{8, 4}, {-16, 3}, {80, 5}, {16, -3}, {8, 60}, {200, 70}, {-72, 0}};
  for (uint32_t swizzle = 0; swizzle <= 3; ++swizzle) {
    const uint32_t inner = swizzle == 0 ? 40 : 8u << swizzle;
    for (const auto& at : places) list.push_back({f16, {100, 64}, {inner, 12}, at, swizzle});
    list.push_back({f32, {50, 64}, {inner / 2, 20}, {4, 50}, swizzle});
    list.push_back({u8, {300, 64}, {inner * 2, 9}, {16, 1}, swizzle});
    list.push_back({u64, {40, 33}, {swizzle == 0 ? 10 : inner / 4, 16}, {2, 20}, swizzle});
    list.push_back({f16, {100, 64}, {8, 30}, {8, 4}, swizzle});  // an inner box narrower than the swizzle
  }
  for (uint32_t offset : {128u, 256u, 512u, 896u}) {
    for (uint32_t swizzle = 1; swizzle <= 3; ++swizzle)
      list.push_back({bf16, {100, 64}, {8u << swizzle, 20}, {0, 7}, swizzle, {}, offset});
    list.push_back({bf16, {100, 64}, {24, 20}, {0, 7}, 0, {}, offset});
  }
  for (uint32_t type : {u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz})
    list.push_back({type, {64, 32}, {32, 8}, {48, 28}});
  for (uint32_t type : {f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz})
    list.push_back({type, {64, 32}, {32, 8}, {48, 28}, 0, {}, 0, 1});
  for (uint32_t type : {tf32, tf32_ftz})
    list.push_back({type, {64, 32}, {64, 16}, {0, 0}});  // over the corner values, ties among them
  // element strides
  for (const std::vector<uint32_t>& strides : {std::vector<uint32_t>{1, 2}, {1, 3}, {1, 8}, {2, 1}, {3, 2}}) {
    list.push_back({f16, {100, 64}, {32, 24}, {8, 4}, 0, strides});
    list.push_back({f16, {100, 64}, {32, 25}, {8, 45}, 2, strides});
  }
  // ranks 3 to 5
  for (const std::vector<int32_t>& at : {std::vector<int32_t>{0, 0, 0}, {8, 3, 2}, {-8, -2, 3}, {40, 6, 4}}) {
    list.push_back({f16, {48, 8, 6}, {32, 4, 3}, at, 0});
    list.push_back({f16, {48, 8, 6}, {64, 4, 3}, at, 3});
    list.push_back({f32, {48, 8, 6}, {16, 4, 3}, at, 2, {1, 2, 1}});
  }
  for (const std::vector<int32_t>& at :
       {std::vector<int32_t>{0, 0, 0, 0}, {8, 3, 2, 1}, {-8, -2, -1, 2}, {40, 4, 2, 2}}) {
    list.push_back({f16, {48, 5, 4, 3}, {32, 3, 2, 2}, at, 0});
    list.push_back({f16, {48, 5, 4, 3}, {32, 3, 3, 2}, at, 2, {1, 1, 2, 1}});
  }
  for (const std::vector<int32_t>& at : {std::vector<int32_t>{0, 0, 0, 0, 0},
                                         {8, 3, 2, 1, 1},
                                         {-8, -2, -1, 2, -1},
                                         {40, 4, 2, 2, 1},
                                         {0, 1, 2, 0, 2}}) {
    list.push_back({f16, {48, 5, 4, 3, 2}, {32, 3, 2, 2, 2}, at, 0});
    list.push_back({bf16, {48, 5, 4, 3, 2}, {64, 3, 2, 1, 2}, at, 3});
    list.push_back({f16, {48, 5, 4, 3, 2}, {16, 3, 2, 3, 2}, at, 1, {1, 2, 1, 2, 1}});
  }
  return list;
}

// What a store's box is of: the same shapes, over the output.
void add_tensor_rows(Table& t) {
  t.family({"tensor-map loads", "9.7.9.27.1.2",
            "the box lies dense in shared memory, xor-swizzled by absolute address; outside the tensor it is "
            "zero or NaN; the full box's bytes complete"});
  const std::string load_belief =
      "the box lies dense in shared memory, xor-swizzled by absolute address; outside the tensor it is zero "
      "or NaN; the full box's bytes complete";
  for (const Shape& s : shapes()) {
    const std::string entry = "load_" + std::to_string(s.extents.size()) + "d";
    Row& row = t.kernel("tensor", entry,
                        "cp.async.bulk.tensor." + std::to_string(s.extents.size()) + "d load " + text_of(s),
                        load_belief);
    describe(row, s, false);
    if (s.type == tf32 || s.type == tf32_ftz) row.inputs = {{Values::f32, 4}};
  }
  for (uint32_t rank = 1; rank <= 5; ++rank) {
    Shape s{f16, {}, {}, {}};
    const uint64_t extents[] = {48, 5, 4, 3, 2};
    const uint32_t box[] = {32, 3, 2, 2, 2};
    for (uint32_t d = 0; d < rank; ++d)
      s.extents.push_back(extents[d]), s.box.push_back(box[d]), s.at.push_back(d == 0 ? 24 : 1);
    describe(t.kernel("tensor", "load_cluster_" + std::to_string(rank) + "d",
                      "cp.async.bulk.tensor." + std::to_string(rank) + "d load to shared::cluster",
                      "a block's own shared::cta address names its own memory as shared::cluster too"),
             s, false);
  }
  const Shape plain{f16, {100, 64}, {32, 12}, {8, 4}, 2};
  describe(t.kernel("tensor", "load_hint_2d", "cp.async.bulk.tensor.2d load with L2::cache_hint",
                    "a cache hint changes no value"),
           plain, false);
  Row& pipeline =
      t.kernel("tensor", "load_pipeline", "cp.async.bulk.tensor.2d loads, two a barrier, two phases",
               "bytes of several copies add up on one barrier");
  describe(pipeline, {f16, {100, 64}, {16, 8}, {0, 0}, 0}, false);
  describe(t.kernel("tensor", "prefetch_2d", "prefetch.tensormap, cp.async.bulk.prefetch.tensor.2d",
                    "a prefetch changes no value"),
           plain, false);

  const std::string store_belief =
      "elements inside the tensor are written, those outside skipped; shared memory is read swizzled by "
      "absolute address";
  t.family({"tensor-map stores", "9.7.9.27.1.2", ""});
  for (const Shape& s : shapes()) {
    if (s.fill) continue;
    uint64_t bytes = (s.extents[0] * bytes_of(s.type) + 15) / 16 * 16 + 16;
    for (size_t d = 1; d < s.extents.size(); ++d) bytes *= s.extents[d];
    Row& row = t.kernel("tensor", "store_" + std::to_string(s.extents.size()) + "d",
                        "cp.async.bulk.tensor." + std::to_string(s.extents.size()) + "d store " + text_of(s),
                        store_belief);
    describe(row, s, true);
    row.words[5] = kShared - s.offset;
    row.output_elements = uint32_t(bytes / 4);
  }
  Row& hint = t.kernel("tensor", "store_hint_2d", "cp.async.bulk.tensor.2d store with L2::cache_hint",
                       "a cache hint changes no value");
  describe(hint, plain, true);
  hint.output_elements = 64 * (208 + 16) / 4;

  t.family({"tensor-map reductions", "9.7.9.27.1.3", ""});
  const auto reduce = [&](const std::string& op, uint32_t type, const char* type_name,
                          const std::string& belief, uint32_t rank = 2) {
    Shape s{type, {}, {}, {}};
    const uint64_t extents[] = {rank == 1 ? 256u : 24u, 12, 3, 2, 2};
    const uint32_t box[] = {16, 8, 2, 2, 2};
    const int32_t at[] = {16, 6, 1, -1, 1};
    uint64_t bytes = (extents[0] * bytes_of(type) + 15) / 16 * 16 + 16;
    for (uint32_t d = 0; d < rank; ++d) {
      s.extents.push_back(extents[d]), s.box.push_back(box[d]), s.at.push_back(at[d]);
      if (d > 0) bytes *= extents[d];
    }
    Row& row =
        t.kernel("tensor", "reduce_" + op + "_" + std::to_string(rank) + "d",
                 "cp.reduce.async.bulk.tensor." + std::to_string(rank) + "d." + op + " " + type_name, belief);
    describe(row, s, true);
    row.output_elements = uint32_t(bytes / 4);
    row.words[8] = row.output_elements;
    // Values of the type, also as what is there before.
    row.inputs = {{type == f16                      ? Values::f16x2
                   : type == bf16                   ? Values::bf16x2
                   : type == f32 || type == f32_ftz ? Values::f32
                                                    : Values::bits,
                   4}};
  };
  for (uint32_t rank = 1; rank <= 5; ++rank) {
    if (rank != 2) reduce("add", u32, "u32", "each element inside the tensor is combined, wrapping", rank);
  }
  for (const char* op : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    reduce(op, u32, "u32", "each element inside the tensor is combined, wrapping");
  for (const char* op : {"add", "min", "max"}) {
    reduce(op, s32, "s32", "each element inside the tensor is combined, wrapping");
    reduce(op, f16, "f16", "rounded to nearest even; min and max order -0 below +0 and drop a NaN");
    reduce(op, bf16, "bf16", "rounded to nearest even; min and max order -0 below +0 and drop a NaN");
  }
  reduce("add", f32, "f32", "rounded to nearest even, subnormals as atom.global.add.f32 treats them");
  reduce("add", f32_ftz, "f32 ftz", "rounded to nearest even, subnormals flushed");
  for (const char* op : {"add", "min", "max", "and", "or", "xor"})
    reduce(op, u64, "u64", "each element inside the tensor is combined, wrapping");
  for (const char* op : {"min", "max"})
    reduce(op, s64, "s64", "each element inside the tensor is combined, wrapping");
}

}  // namespace

void add_bulk_rows(Table& t) {
  add_tensor_rows(t);
  t.family({"bulk copies", "9.7.9.25", ""});
  const auto row = [&](const std::string& entry, const std::string& name, uint32_t bytes,
                       uint32_t shared_offset, const std::string& belief) -> Row& {
    Row& r = t.kernel("bulk", entry, name, belief);
    r.words[0] = bytes;
    r.words[1] = shared_offset;
    r.dynamic_shared = 4096;
    r.elements = 2048;
    r.output_elements = 1024;
    return r;
  };
  for (uint32_t bytes : {16u, 48u, 1024u, 3328u})
    row("bulk_load", "cp.async.bulk shared::cta.global of " + std::to_string(bytes) + " bytes", bytes, 48,
        "bytes arrive in order and complete as many on the barrier");
  row("bulk_load_cluster", "cp.async.bulk shared::cluster.global", 512, 16,
      "a block's own shared::cta address names its own memory as shared::cluster too");
  row("bulk_load_hint", "cp.async.bulk shared::cluster.global with L2::cache_hint", 512, 16,
      "a cache hint changes no value");
  for (uint32_t bytes : {16u, 48u, 2048u})
    row("bulk_store", "cp.async.bulk global.shared::cta of " + std::to_string(bytes) + " bytes", bytes, 32,
        "bytes are written in order")
        .words[2] = 12;
  row("bulk_groups", "cp.async.bulk.commit_group, wait_group", 0, 0,
      "groups belong to a thread and complete in order; .read waits for the sources alone");
  row("bulk_prefetch", "cp.async.bulk.prefetch.L2", 0, 0, "a prefetch changes no value");
  t.family({"bulk reductions", "9.7.9.25.4.2", ""});
  struct Reduction {
    const char* op;
    const char* type;
    Values values;
  };
  for (const Reduction& r : {Reduction{"add", "u32", Values::bits}, {"add", "s32", Values::bits},
                             {"add", "u64", Values::bits},          {"add", "f32", Values::f32},
                             {"add", "f64", Values::f64},           {"min", "u32", Values::bits},
                             {"min", "s32", Values::bits},          {"min", "s64", Values::bits},
                             {"max", "u32", Values::bits},          {"max", "s32", Values::bits},
                             {"max", "u64", Values::bits},          {"min", "f16", Values::f16x2},
                             {"max", "f16", Values::f16x2},         {"min", "bf16", Values::bf16x2},
                             {"max", "bf16", Values::bf16x2},       {"inc", "u32", Values::integers},
                             {"dec", "u32", Values::integers},      {"and", "b32", Values::bits},
                             {"or", "b32", Values::bits},           {"xor", "b32", Values::bits},
                             {"and", "b64", Values::bits},          {"or", "b64", Values::bits},
                             {"xor", "b64", Values::bits},          {"add_noftz", "f16", Values::f16x2},
                             {"add_noftz", "bf16", Values::bf16x2}}) {
    const bool wide = r.values == Values::f64;
    Row& one = row(std::string("bulk_reduce_") + r.op + "_" + r.type,
                   std::string("cp.reduce.async.bulk global.shared::cta ") + r.op + "." + r.type, 2048, 0,
                   "each element is combined with what is there; floats round to nearest even");
    one.inputs = {{r.values, wide ? 8u : 4u}};
    if (wide) one.elements = 1024;
  }
  t.family({"asynchronous copies of threads", "9.7.9.25.3", ""});
  using Text = const char*;
  for (const auto& [entry, name, belief] :
       {std::tuple<Text, Text, Text>{"thread_copy_4", "cp.async.ca of 4 bytes", "complete after wait_group"},
        {"thread_copy_8", "cp.async.ca of 8 bytes", "complete after wait_group"},
        {"thread_copy_16", "cp.async.ca of 16 bytes", "complete after wait_group"},
        {"thread_copy_cg", "cp.async.cg of 16 bytes", "complete after wait_group"},
        {"thread_copy_partial_4", "cp.async.ca of a part of 4 bytes",
         "what the source does not give becomes zero"},
        {"thread_copy_partial_16", "cp.async.cg of a part of 16 bytes",
         "what the source does not give becomes zero"},
        {"thread_copy_ignored", "cp.async.ca with ignore-src",
         "the source counts as zeros where the predicate holds"},
        {"thread_copy_groups", "cp.async.commit_group, wait_group, wait_all", "groups complete in order"},
        {"thread_copy_barrier", "cp.async.mbarrier.arrive",
         "the arrival is made when the thread's copies are there"}}) {
    row(entry, name, 0, 0, belief).ptx = kernel_ptx("thread_copy");
  }
}

}  // namespace fa4::conformance
