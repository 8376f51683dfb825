// SPDX-License-Identifier: Apache-2.0
// A PTX module as text says it: what the parser produces and the program builder (core/program) consumes.
// Nothing here knows what an instruction means.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fa4::sim::ptx {

// Where a piece of text stands: line and column in the PTX, and the .loc in force (file 0: none). For inlined
// code the .loc is the innermost position: the line of the inlined function, not that of its call.
struct Location {
  uint32_t line = 0, column = 0;  // 1-based, in the PTX text
  uint32_t source_file = 0;       // index into Module::files; the text may name a file that it never declares
  uint32_t source_line = 0;       // line in that file
};

// Malformed or unsupported PTX. what() reads "line L, column C: message: 'text of the line'".
struct Error : std::runtime_error {
  Error(uint32_t line, uint32_t column, const std::string& message, std::string_view line_text);
  // All that is wrong with `what`, in one sentence: "what: " and the errors, at least one. Line and column
  // are those of the first.
  Error(const std::string& what, const std::vector<Error>& errors);
  uint32_t line, column;
};

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f32x2,
  f64
};
uint32_t size_in_bytes(Type type);               // 0 for none and pred
Type type_from_suffix(std::string_view suffix);  // "f32" -> f32; Type::none when it names no type

// True for the names of PTX's special registers, with component where they have one ("%laneid", "%tid.x").
bool is_special_register(std::string_view name);

enum class Space : uint8_t { none, global, shared, local, constant, param };

struct Operand {
  enum class Kind : uint8_t {
    none,
    sink,       // _
    reg,        // %r1            reg
    reg_pair,   // %r1|%p1        reg, reg2 (either may be a sink: sink_reg)
    immediate,  // 3, -1, 0x10, 0f3F800000, 0d...   bits (integers sign-extended to 64 bits; floats as their
                // bits)
    symbol,     // name, name+4   symbol, offset
    special,    // %tid.x         symbol holds "%tid.x"
    label,      // $L__BB0_1      label = index into Function::labels
    address,    // [%r1+4] [sym] [sym+4] [16]: reg or symbol (neither: reg and symbol are -1), offset
    tensor,     // [%rd1, {%r1, %r2}]: reg or symbol, offset, elements = coordinates
    vector,     // {%r1, %r2, ...}: elements, 1 to 128
    call_list,  // (a, b): elements, possibly none
    branch_table,  // the .branchtargets list of a brx.idx: label = index into Function::branch_tables
  };
  Kind kind = Kind::none;
  bool negated = false;         // !%p1
  bool is_float = false;        // immediate written as a floating-point constant
  bool is_double = false;       // immediate: 0d... or a decimal point constant (bits are those of a double)
  int32_t reg = -1, reg2 = -1;  // index into Function::registers
  int32_t symbol = -1;          // index into Function::names: the unique name of a variable of the function,
                                // else the name of a parameter, module variable or function
  int32_t label = -1;
  int64_t offset = 0;
  uint64_t bits = 0;
  std::vector<Operand> elements;
};
constexpr int32_t sink_reg = -2;

struct Instruction {
  int32_t guard = -1;  // predicate register, -1: none
  bool guard_negated = false;
  std::string_view opcode;  // "tcgen05.mma.cta_group::1.kind::f16", without guard and blanks
  std::span<const std::string_view>
      parts;  // opcode split at '.', first is the base ("tcgen05"). Both are views into
              // Module::opcodes: copies of an Instruction are good while the module lives
  std::vector<Operand> operands;
  Location location;
};

struct Register {
  std::string name;  // "%r12"; scoped ones are made unique by the parser ("%px" -> "%px#2")
  Type type = Type::none;
};

// A variable in some state space, of module or function scope; also a kernel parameter.
struct Variable {
  std::string name;
  Space space = Space::none;
  Type type = Type::b8;
  uint32_t alignment = 1;  // bytes
  uint64_t size = 0;       // bytes; 0 with is_extern: sized at launch (dynamic shared memory)
  bool is_extern = false;
  bool is_managed = false;           // .attribute(.managed)
  std::vector<uint8_t> initializer;  // little-endian bytes, may be shorter than size (rest is zero)
  Location location;
};

struct Label {
  std::string name;          // made unique where scopes repeat a name
  uint32_t instruction = 0;  // index of the instruction that follows; == instructions.size() at the end
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Variable> returns, params;
  std::vector<Register> registers;  // those that are used, and those that are declared one by one: of a range
                                    // ("%r<12>") only the used ones, in the order of their first use
  std::vector<Variable> variables;  // .local/.shared/.param declared inside, of all scopes; unique names
  std::vector<std::string> names;   // interned identifiers that operands refer to
  std::vector<Label> labels;
  std::vector<std::vector<int32_t>> branch_tables;  // indices into labels
  std::vector<Instruction> instructions;
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid, 0: not given
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  uint32_t max_registers = 0;                // .maxnreg
  uint32_t min_ctas = 0;                     // .minnctapersm
  uint32_t cluster[3] = {0, 0, 0};           // .reqnctapercluster
  uint32_t max_cluster_rank = 0;             // .maxclusterrank
  bool explicit_cluster = false;             // .explicitcluster
  Location location;
};

// An opcode that occurs in a module, and its parts: views into `text`.
struct Opcode {
  std::string text;
  std::vector<std::string_view> parts;
};

// Moving a Module keeps every view and pointer into it good, except views into `text`; copying it is not
// possible.
struct Module {
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  uint32_t version_major = 0, version_minor = 0;
  std::string target;              // "sm_100f"
  std::vector<std::string> files;  // by .file index; [0] unused, "" where the text declares none
  std::vector<Variable> variables;
  std::vector<Function> functions;  // one for each name: a definition takes the place of its declaration
  std::deque<Opcode> opcodes;  // distinct opcodes; a deque, because instructions hold views into its elements
  std::string text;            // the whole PTX, for messages
  std::vector<uint32_t> line_starts;  // offset into text of each line
};

// The text of a line (1-based) without its end; empty when there is no such line.
std::string_view line_text(const Module& module, uint32_t line);

// A place for a message: "line 120: 'tcgen05.ld.sync...;' (asm/attention/softmax.cuh:57)". The parenthesis is
// absent where no .loc of a declared file is in force. The text is trimmed, and cut when it is long.
std::string describe(const Module& module, const Location& location);
std::string describe(const Module& module, const Instruction& instruction);

// Parses a whole module. Throws Error for anything it does not understand: no directive, operand or token is
// skipped silently, except what has no meaning for execution: .section and .pragma, .ptr hints of parameters,
// .noreturn, the linkage .visible, .weak and .common, and the inlining part of .loc. Checks names (declared,
// once a scope) but no types and no opcodes (grammar.h). Time and memory are linear in the text, which may
// have up to 256 MiB.
Module parse(std::string text);

}  // namespace fa4::sim::ptx
