// SPDX-License-Identifier: Apache-2.0
// The conformance table: one small kernel for each instruction form, run on any driver with the same inputs,
// its output compared bit for bit. A row says what is believed about the form, so that a difference names the
// belief that is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fa4::conformance {

// What the values of an operand look like: corner cases first, then seeded random ones. Small ones are finite
// and near 1, for sums of products.
enum class Values : uint8_t {
  integers,
  shifts,
  bits,
  f32,
  f64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32x2,
  small_f16x2,
  small_bf16x2,
  small_f32
};

struct Input {
  Values values;
  uint32_t bytes;  // of an element
};

// The lowest device that has the form. `hopper` and `blackwell` forms exist for these chips alone (targets
// with an a).
enum class Needs : uint8_t { sm_90, hopper, blackwell };

// A tiled tensor map over the row's input or output buffer.
struct Map {
  bool over_output = false;
  uint32_t type = 0;  // CUtensorMapDataType
  uint32_t rank = 1;
  uint64_t extents[5] = {1, 1, 1, 1, 1};
  uint64_t strides[4] = {};  // bytes
  uint32_t box[5] = {1, 1, 1, 1, 1};
  uint32_t element_strides[5] = {1, 1, 1, 1, 1};
  uint32_t swizzle = 0, fill = 0, interleave = 0;  // CUtensorMapSwizzle, ...FloatOOBfill, ...Interleave
  uint64_t offset = 0;                             // bytes into the buffer
};

constexpr uint32_t kWords = 24;  // of a kernel's third parameter

struct Row {
  std::string name;          // the opcode, with a note where several rows are about it
  std::string_view family;   // row of the table of support
  std::string_view section;  // of the PTX ISA 9.0
  std::string belief;        // what holds if the devices agree
  Needs needs = Needs::sm_90;
  // The module. `.target $` stands for the target of the device it runs on.
  std::string ptx;
  std::string entry = "row";
  // Inputs lie one after the other in one buffer, each `elements` long.
  std::vector<Input> inputs;
  uint32_t elements = 0;
  uint32_t output_elements = 0, output_element_bytes = 0;
  uint32_t grid = 1, block = 128, dynamic_shared = 0;
  uint32_t grid_y = 1, grid_z = 1, block_y = 1, block_z = 1;
  uint32_t cluster[3] = {0, 0, 0};  // CTAs; 0: launched without a cluster
  // Kernels from .cu files take (output, input, words, map), and some one more map; generated ones (output, input).
  uint32_t words[kWords] = {};
  std::optional<Map> map, output_map;

  size_t output_bytes() const { return size_t(output_elements) * output_element_bytes; }
  size_t input_bytes() const;
};

// Families of rows: fills in what they share.
struct Family {
  std::string_view name;
  std::string_view section;
  std::string_view belief;
};

// Rows of lane-by-lane forms, from one line each.
class Table {
 public:
  explicit Table(std::vector<Row>& rows) : rows_(rows) {}
  void family(const Family& family) { family_ = family; }
  void needs(Needs needs) { needs_ = needs; }
  // `signature` is "d=abc": the kind of the result and of each source (see letters in table.cpp). `text` is
  // an opcode or, with ';', statements on %d, %a, %b, %c that may use %p, %q (predicates), %t, %u (32 bits),
  // %h (16), %w (64), %lane and %i, the element's index. An empty name stands for the opcode.
  Row& add(const std::string& text, std::string_view signature, std::string name = "",
           std::string belief = "");
  // A row whose kernel is in kernels/NAME.cu, under the entry of that name.
  Row& kernel(std::string_view file, std::string_view entry, std::string name, std::string belief);
  // A row with a module of its own; inputs, sizes and launch are to be filled in.
  Row& text(std::string name, std::string belief, std::string ptx);
  Row& last() { return rows_.back(); }

 private:
  std::vector<Row>& rows_;
  Family family_{};
  Needs needs_ = Needs::sm_90;
};

// All rows, in a fixed order; names are unique.
const std::vector<Row>& all_rows();

// One function a file of rows.
void add_integer_rows(Table& table);
void add_float_rows(Table& table);
void add_half_rows(Table& table);
void add_conversion_rows(Table& table);
void add_selection_rows(Table& table);
void add_memory_rows(Table& table);
void add_warp_rows(Table& table);
void add_barrier_rows(Table& table);
void add_bulk_rows(Table& table);
void add_cluster_rows(Table& table);
void add_control_rows(Table& table);
void add_matrix_rows(Table& table);
void add_wgmma_rows(Table& table);
void add_attention_rows(Table& table);
void add_blackwell_rows(Table& table);

// The bytes of a row's input buffer: the same on every machine.
std::vector<std::byte> input_of(const Row& row);
// "a 0x3f800000, b 0x00000001": what one output element was computed from, for lane-by-lane rows.
std::string describe_inputs(const Row& row, const std::vector<std::byte>& input, uint32_t element);

// PTX of kernels/NAME.cu as nvcc made it for sm_90a, with its target replaced by $.
std::string kernel_ptx(std::string_view file);
// A row's module for a device: target sm_90a on 9.0, sm_100a on 10.0, and so on.
std::string module_for(const Row& row, int major, int minor);
// Whether a device can run the row.
bool runs_on(const Row& row, int major);

}  // namespace fa4::conformance
