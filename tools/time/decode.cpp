// SPDX-License-Identifier: Apache-2.0
// From an instruction of the machine code to what the machine sees of it: the table of opcodes.
#include <algorithm>
#include <array>
#include <charconv>

#include "machine.h"

namespace fa4::time {

namespace {

using Effect = MicroOp::Effect;

// What decides how long the result of an instruction of variable latency takes.
enum class Result : uint8_t {
  fixed,
  mufu,
  shared,
  shuffle,
  constant,
  special,
  global,
  other,
  fence_async,
  fence,
  tma
};

struct Row {
  std::string_view opcode;  // without modifiers; a trailing * stands for any more letters
  Unit unit;
  Result result = Result::fixed;
};

// An instruction that is in no row is an error. The first row that fits counts.
constexpr Row kRows[] = {
    {"NOP", Unit::control},
    {"BRA", Unit::control},
    {"BRX", Unit::control},
    {"BRXU", Unit::control},
    {"BSSY", Unit::control},
    {"BSYNC", Unit::control},
    {"CALL", Unit::control},
    {"RET", Unit::control},
    {"EXIT", Unit::control},
    {"BPT", Unit::control},
    {"YIELD", Unit::control},
    {"WARPSYNC", Unit::control},
    {"NANOSLEEP", Unit::control},
    {"DEPBAR", Unit::control},
    {"PREEXIT", Unit::control},
    {"ACQBULK", Unit::control},
    {"BMOV", Unit::control},
    {"WARPGROUP", Unit::control},
    {"ELECT", Unit::control},
    {"BREAK", Unit::control},
    {"ENDCOLLECTIVE", Unit::control},

    {"FFMA", Unit::ffma},
    {"FADD", Unit::ffma},
    {"FMUL", Unit::ffma},
    {"FFMA2", Unit::ffma_pair},
    {"FADD2", Unit::ffma_pair},
    {"FMUL2", Unit::ffma_pair},
    {"IMAD", Unit::imad},
    {"IDP*", Unit::imad},
    {"HFMA2", Unit::imad},
    {"HADD2", Unit::imad},
    {"HMUL2", Unit::imad},
    {"HMNMX2", Unit::alu},
    {"HSETP2", Unit::imad},
    {"VHMNMX", Unit::alu},

    {"LOP3", Unit::alu},
    {"SHF", Unit::alu},
    {"PRMT", Unit::alu},
    {"MOV", Unit::alu},
    {"SEL", Unit::alu},
    {"FSEL", Unit::alu},
    {"FMNMX", Unit::alu},
    {"FMNMX3", Unit::alu},
    {"VIMNMX*", Unit::alu},
    {"VIADD*", Unit::alu},
    {"IADD3", Unit::alu},
    {"IADD", Unit::alu},
    {"IABS", Unit::alu},
    {"ISETP", Unit::alu},
    {"FSETP", Unit::alu},
    {"FSET", Unit::alu},
    {"F2FP", Unit::alu},
    {"I2FP", Unit::alu},
    {"LEA", Unit::alu},
    {"PLOP3", Unit::alu},
    {"R2P", Unit::alu},
    {"P2R", Unit::alu},
    {"BMSK", Unit::alu},
    {"SGXT", Unit::alu},
    {"CS2R", Unit::alu},
    {"FCHK", Unit::mufu, Result::mufu},
    {"IMNMX", Unit::alu},
    {"FSWZADD", Unit::ffma},
    {"VOTE", Unit::alu},
    {"VABSDIFF*", Unit::alu},

    {"MUFU", Unit::mufu, Result::mufu},
    {"F2I", Unit::mufu, Result::mufu},
    {"I2F", Unit::mufu, Result::mufu},
    {"F2F", Unit::mufu, Result::mufu},
    {"FRND", Unit::mufu, Result::mufu},
    {"POPC", Unit::mufu, Result::mufu},
    {"FLO", Unit::mufu, Result::mufu},
    {"BREV", Unit::mufu, Result::mufu},

    {"LDS", Unit::memory, Result::shared},
    {"LDSM", Unit::memory, Result::shared},
    {"STS", Unit::memory, Result::shared},
    {"STSM", Unit::memory, Result::shared},
    {"ATOMS", Unit::memory, Result::shared},
    {"SHFL", Unit::memory, Result::shuffle},
    {"REDUX", Unit::memory, Result::shuffle},
    {"MATCH", Unit::memory, Result::shuffle},
    {"LDC", Unit::memory, Result::constant},
    {"LDCU", Unit::memory, Result::constant},
    {"S2R", Unit::memory, Result::special},
    {"S2UR", Unit::memory, Result::special},
    {"LDG", Unit::memory, Result::global},
    {"LD", Unit::memory, Result::global},
    {"LDL", Unit::memory, Result::global},
    {"STG", Unit::memory, Result::other},
    {"ST", Unit::memory, Result::other},
    {"STL", Unit::memory, Result::other},
    {"ATOM", Unit::memory, Result::global},
    {"ATOMG", Unit::memory, Result::global},
    {"RED", Unit::memory, Result::other},
    {"REDG", Unit::memory, Result::other},
    {"CCTL", Unit::memory, Result::other},
    {"MEMBAR", Unit::memory, Result::fence},
    {"ERRBAR", Unit::memory, Result::fence},
    {"FENCE", Unit::memory, Result::fence_async},
    {"R2UR", Unit::alu, Result::other},
    {"SYNCS", Unit::memory, Result::other},
    {"BAR", Unit::memory, Result::other},
    {"GETLMEMBASE", Unit::memory, Result::other},
    {"LDGSTS", Unit::memory, Result::other},
    {"LDGDEPBAR", Unit::memory, Result::other},
    {"CGAERRBAR", Unit::memory, Result::fence},

    {"LDTM", Unit::tmem},
    {"STTM", Unit::tmem},
    {"UTCHMMA", Unit::mma, Result::other},
    {"UTCQMMA", Unit::mma, Result::other},
    {"HGMMA", Unit::control},
    {"UTCBAR", Unit::mma, Result::other},
    {"UTCATOMSWS", Unit::mma, Result::other},
    {"UTCCP", Unit::mma, Result::other},
    {"UTMALDG", Unit::tma, Result::tma},
    {"UTMASTG", Unit::tma, Result::tma},
    {"UBLKCP", Unit::tma, Result::tma},
    {"UTMAPF", Unit::tma, Result::tma},
    {"UTMACCTL", Unit::memory, Result::other},
    {"UTMACMDFLUSH", Unit::memory, Result::other},
    {"UTMAREDG", Unit::tma, Result::tma},
    {"UBLKPF", Unit::tma, Result::tma},
    {"UBLKRED", Unit::tma, Result::tma},
    {"UCGABAR_ARV", Unit::memory, Result::other},
    {"UCGABAR_WAIT", Unit::memory, Result::other},
    {"USETMAXREG", Unit::control},
    {"UVIRTCOUNT", Unit::control},
    {"USETSHMSZ", Unit::control},
    {"UFLO", Unit::uniform, Result::other},
    {"UPOPC", Unit::uniform, Result::other},
    {"UREDUX", Unit::uniform, Result::other},
    {"U*", Unit::uniform},
    {"VOTEU", Unit::uniform},
};

const Row* row_of(std::string_view opcode) {
  for (const Row& row : kRows) {
    if (row.opcode.ends_with('*') ? opcode.starts_with(row.opcode.substr(0, row.opcode.size() - 1))
                                  : opcode == row.opcode)
      return &row;
  }
  return nullptr;
}

// The different registers that an instruction reads, at most four.
struct Registers {
  int32_t number[4];
  bool reuse[4];
  int count = 0;
  uint8_t places = 0;  // MicroOp::sources
};
Registers registers_read(const Instruction& x) {
  Registers r;
  std::string_view rest = x.operands;
  bool first = true;
  int place = -1;  // of a source among the operands
  while (!rest.empty() && r.count < 4) {
    const size_t comma = rest.find(',');
    std::string_view operand = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (first) {  // the destination
      first = false;
      continue;
    }
    while (!operand.empty() &&
           (operand[0] == ' ' || operand[0] == '-' || operand[0] == '|' || operand[0] == '~'))
      operand.remove_prefix(1);
    // Carries and the second result of a comparison stand before the sources.
    if (place < 0 && (operand.starts_with("P") || operand.starts_with("UP"))) continue;
    ++place;
    if (operand.size() < 2 || operand[0] != 'R' || operand[1] < '0' || operand[1] > '9') continue;
    int32_t number = 0;
    std::from_chars(operand.data() + 1, operand.data() + operand.size(), number);
    if (place < 3) r.places |= uint8_t((number % 2 == 0 ? 1 : 2) << 2 * place);
    const bool reuse = operand.find(".reuse") != std::string_view::npos;
    const auto found = std::find(r.number, r.number + r.count, number);
    if (found != r.number + r.count) {
      r.reuse[found - r.number] &= reuse;
    } else {
      r.number[r.count] = number;
      r.reuse[r.count++] = reuse;
    }
  }
  return r;
}

// The most registers that are read of one of two banks, even and odd; those in the reuse cache do not count.
uint8_t port_cycles(const Registers& r) {
  uint8_t of_bank[2] = {};
  for (int i = 0; i < r.count; ++i) of_bank[r.number[i] % 2] += !r.reuse[i];
  return std::max<uint8_t>({1, of_bank[0], of_bank[1]});
}

uint32_t registers_of(std::string_view opcode) {
  const size_t x = opcode.find(".x");
  uint32_t n = 1;
  if (x != std::string_view::npos) std::from_chars(opcode.data() + x + 2, opcode.data() + opcode.size(), n);
  return n;
}

}  // namespace

MicroOp decode(const Instruction& x, const Gpu& gpu) {
  const std::string_view base = x.base();
  const Row* row = row_of(base);
  if (!row) throw Error("the model of time does not know the opcode of: " + x.text());
  const bool blackwell = row->unit == Unit::tmem || base.starts_with("UTC");
  if (blackwell ? gpu.tmem_load_rate == 0 : base == "HGMMA" && gpu.mma_queue == 0)
    throw Error("this is not the machine code of a GPU of that kind: " + std::string(gpu.name) +
                " has no such instruction: " + x.text());
  MicroOp op;
  op.unit = row->unit;
  op.keep = x.keep;
  op.writes = x.writes;
  op.reads = x.reads;
  op.waits = x.waits;
  op.stall = x.stall;
  if (x.stall == 1 && !x.keep) op.stall = 2;
  if (x.stall == 0) op.stall = x.keep ? 2 : 34;
  if (x.stall > 11 && x.keep) op.stall = x.stall == 15 ? 2 : 1;  // a long one counts only with a yield
  switch (row->unit) {
    case Unit::ffma:
      op.interval = uint8_t(gpu.ffma);
      break;
    case Unit::ffma_pair:
      op.interval = uint8_t(gpu.ffma_pair);
      break;
    case Unit::imad:
      op.interval = uint8_t(x.is("WIDE") || x.is("HI") ? 2 * gpu.imad : gpu.imad);
      break;
    case Unit::alu:
      op.interval = uint8_t(gpu.alu);
      break;
    case Unit::mufu:
      op.interval = uint8_t(x.is("EX2") ? gpu.mufu_exp2 : gpu.mufu);
      break;
    case Unit::uniform:
      op.interval = uint8_t(gpu.uniform);
      break;
    case Unit::memory:
      op.interval = uint8_t(gpu.memory_issue);
      break;
    case Unit::mma:
      op.interval = uint8_t(gpu.mma_issue);
      break;
    case Unit::tma:
      op.interval = uint8_t(gpu.tma_issue);
      break;
    case Unit::tmem:
      op.interval = 1;
      break;
    case Unit::control:
    case Unit::count:
      break;
  }
  const Registers registers = registers_read(x);
  if (gpu.register_ports && (row->unit == Unit::ffma || row->unit == Unit::alu || row->unit == Unit::imad))
    op.ports = port_cycles(registers);
  op.sources = registers.places;
  if (row->unit == Unit::mufu) op.sources = MicroOp::every_source;

  const uint32_t width = x.is("128") ? 128 : x.is("64") ? 64 : 32;
  switch (row->result) {
    case Result::fixed:
      break;
    case Result::mufu:
      op.latency = uint16_t(gpu.mufu_latency);
      break;
    case Result::shared:
      op.effect = Effect::shared;
      op.latency = uint16_t(width == 128 || base == "LDSM" ? gpu.shared_128
                            : width == 64                  ? gpu.shared_64
                                                           : gpu.shared_32);
      op.read_latency = uint16_t(width == 128 ? 17 : width == 64 ? 13 : 11);
      op.cost = uint16_t(32 * width / 8 / gpu.shared_rate);
      break;
    case Result::shuffle:
      op.latency = uint16_t(gpu.shuffle);
      if (base == "SHFL") {  // through shared memory's crossbar, 4 bytes a lane
        op.effect = Effect::shared;
        op.cost = uint16_t(32 * 4 / gpu.shared_rate);
      }
      break;
    case Result::constant:
      op.latency = uint16_t(gpu.constant);
      break;
    case Result::special:
      op.latency = uint16_t(base == "S2UR" ? gpu.special_uniform : gpu.special_register);
      break;
    case Result::global:
      op.latency = uint16_t(gpu.global_load);
      break;
    case Result::other:
      op.latency = uint16_t(gpu.other);
      break;
    case Result::fence_async:
      op.latency = uint16_t(gpu.proxy_fence);
      break;
    case Result::fence:
      op.latency = uint16_t(gpu.membar);
      break;
    case Result::tma:
      op.latency = uint16_t(gpu.tma_issue);
      break;
  }
  if (op.read_latency == 0) op.read_latency = std::min<uint16_t>(op.latency, 20);

  if (base == "SYNCS") {
    op.effect = x.is("PHASECHK") ? Effect::wait : x.is("ARRIVE") ? Effect::arrive : Effect::none;
    op.latency = uint16_t(gpu.wait_latency);
  } else if (base == "LDTM" || base == "STTM") {
    op.effect = base == "LDTM" ? Effect::tmem_load : Effect::tmem_store;
    op.cost = uint16_t(4 * registers_of(x.opcode));
  } else if (base == "FENCE" && x.is("T")) {
    op.effect = Effect::tmem_fence;
    op.latency = 4;
  } else if (base == "HGMMA") {
    op.effect = Effect::warpgroup_mma;
    op.pending = x.operands.find("gsb0") != std::string::npos;
  } else if (base == "WARPGROUP" && x.is("DEPBAR")) {
    op.effect = Effect::wait_mma;
    const size_t count = x.operands.rfind("0x");
    if (count != std::string::npos)
      std::from_chars(x.operands.data() + count + 2, x.operands.data() + x.operands.size(), op.pending, 16);
  } else if (base == "UTCHMMA" || base == "UTCQMMA") {
    op.effect = Effect::mma;
  } else if (base == "UTCBAR") {
    op.effect = Effect::commit;
  } else if (base == "UTMALDG" || base == "UBLKCP") {
    op.effect = Effect::copy_in;
  } else if (base == "UTMASTG") {
    op.effect = Effect::copy_out;
  } else if (base == "UTMACMDFLUSH") {
    op.effect = Effect::close_group;
  } else if (base == "DEPBAR" && x.operands.starts_with("SB0, 0x")) {
    op.effect = Effect::wait_group;
    std::from_chars(x.operands.data() + 7, x.operands.data() + x.operands.size(), op.pending, 16);
  } else if (base == "BAR") {
    op.effect = x.is("ARV") ? Effect::bar_arrive : Effect::bar_sync;
  } else if (base == "EXIT") {
    op.effect = Effect::end;
  }
  return op;
}

}  // namespace fa4::time
