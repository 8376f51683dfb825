// SPDX-License-Identifier: Apache-2.0
// One tile through the tensor core: D = A B with small integers, exact in every format, for all layouts of
// the operands in shared memory and for A in tensor memory; and the shapes in which warps read and write
// tensor memory.
#include <algorithm>

#include "async.h"
#include "support/catch.h"
#include "support/half.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

constexpr uint32_t kDepth = 64, kSteps = 4;       // of K, in instructions of 16
constexpr uint32_t kA = 1024, kB = 1024 + 16384;  // bytes in smem

// How an operand lies in shared memory, as the table of canonical layouts says. width: bytes of a row of the
// swizzle atom, 16 for none.
struct Layout {
  uint32_t width;
  bool mn_major;
  uint32_t rows;  // M or N

  uint32_t elements() const { return width / 2; }  // in a row of the atom
  uint32_t padded_rows() const {
    return mn_major ? (rows + elements() - 1) / elements() * elements() : (rows + 7) / 8 * 8;
  }
  uint32_t leading() const {
    if (width == 16) return mn_major ? 128 : padded_rows() * 16;
    return mn_major ? kDepth * width : 16;  // unused when K-major
  }
  uint32_t stride() const { return width == 16 ? (mn_major ? kDepth / 8 * 128 : 128) : 8 * width; }
  uint32_t swizzle_code() const { return width == 16 ? 0 : width == 32 ? 6 : width == 64 ? 4 : 2; }
  uint32_t bytes() const { return padded_rows() * kDepth * 2; }
  // Byte of element (mn, k) before the XOR.
  uint32_t linear(uint32_t mn, uint32_t k) const {
    const uint32_t e = elements();
    if (width == 16)
      return mn_major ? mn % 8 * 2 + mn / 8 * stride() + k % 8 * 16 + k / 8 * leading()
                      : mn % 8 * 16 + mn / 8 * stride() + k % 8 * 2 + k / 8 * leading();
    if (mn_major) return mn % e * 2 + mn / e * leading() + k % 8 * width + k / 8 * stride();
    return k / e * padded_rows() * width + mn / 8 * stride() + mn % 8 * width + k % e * 2;
  }
  uint32_t swizzled(uint32_t byte) const {
    return byte ^ (byte >> 7 & (width / 16 - 1)) << 4;
  }  // tiles are 1024-byte aligned
  uint64_t descriptor(uint32_t base, uint32_t step) const {
    return matrix_descriptor(base + linear(0, 16 * step), leading(), stride(), swizzle_code());
  }
};

int element(uint32_t which, uint32_t mn, uint32_t k) {
  return int((mn * 7 + k * 13 + which * 5 + mn * k) % 11) - 5;
}

uint16_t encode(bool bf16, int value) {
  return bf16 ? fa4::support::float_to_bf16(float(value)) : fa4::support::float_to_fp16(float(value));
}

std::vector<uint16_t> image(const Layout& layout, uint32_t which, bool bf16) {
  std::vector<uint16_t> bytes(layout.bytes() / 2, encode(bf16, 99));
  for (uint32_t mn = 0; mn < layout.rows; ++mn) {
    for (uint32_t k = 0; k < kDepth; ++k)
      bytes[layout.swizzled(layout.linear(mn, k)) / 2] = encode(bf16, element(which, mn, k));
  }
  return bytes;
}

// Writes raw registers of the accumulator: ((warp * 32 + lane) * 32 + chunk of 8 columns) * 8 words. M = 128
// reads 32x32b.x8; M = 64, of which 16 lanes a warp hold rows, 16x256b.x1.
std::string read_out() {
  return R"(
  shl.b32 %r20, %warp, 21;
  add.s32 %r20, %r20, %tm;
  shl.b32 %r21, %tid32, 10;
  cvt.u64.u32 %d20, %r21;
  add.s64 %out, %out, %d20;
  ld.param.u32 %r22, [n];
  ld.param.u32 %r23, [m];
  setp.eq.u32 %p3, %r23, 128;
READ:
  @!%p3 bra NARROW;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}, [%r20];
  tcgen05.wait::ld.sync.aligned;
  st.global.v4.b32 [%out+16], {%v4, %v5, %v6, %v7};
  bra BOTH;
NARROW:
  tcgen05.ld.sync.aligned.16x256b.x1.b32 {%v0, %v1, %v2, %v3}, [%r20];
  tcgen05.wait::ld.sync.aligned;
BOTH:
  st.global.v4.b32 [%out], {%v0, %v1, %v2, %v3};
  add.s64 %out, %out, 32;
  add.s32 %r20, %r20, 8;
  sub.s32 %r22, %r22, 8;
  setp.gt.s32 %p4, %r22, 0;
  @%p4 bra READ;
)" + free_tmem(512) +
         "  ret;\n";
}

const std::string kParameters =
    ".param .u64 out, .param .u64 a, .param .u32 a_bytes, .param .u64 b, .param .u32 b_bytes, .param .u64 "
    "descriptors, "
    ".param .u32 instruction, .param .u32 m, .param .u32 n";

// Both operands by bulk copies; four MMAs; a commit. With A in tensor memory the copy of A is left out and
// each thread writes its lane's 32 words to columns 256...
std::string gemm_kernel(bool a_in_tmem) {
  std::string body = prologue() + init_barrier(0, 1) + init_barrier(8, 1) + allocate_tmem(16, 512) + R"(
  ld.param.u64 %d1, [a];
  ld.param.u32 %r1, [a_bytes];
  ld.param.u64 %d2, [b];
  ld.param.u32 %r2, [b_bytes];
  ld.param.u64 %d3, [descriptors];
  ld.param.u32 %r3, [instruction];
)";
  if (a_in_tmem) {
    body += "  mul.wide.u32 %d4, %tid32, 128;\n  add.s64 %d1, %d1, %d4;\n";
    for (uint32_t i = 0; i < 32; i += 4) {
      body += "  ld.global.v4.b32 {%v" + std::to_string(i) + ", %v" + std::to_string(i + 1) + ", %v" +
              std::to_string(i + 2) + ", %v" + std::to_string(i + 3) + "}, [%d1+" + std::to_string(4 * i) +
              "];\n";
    }
    body +=
        "  shl.b32 %r20, %warp, 21;\n  add.s32 %r20, %r20, %tm;\n  tcgen05.st.sync.aligned.32x32b.x32.b32 "
        "[%r20+256], " +
        registers(32) +
        ";\n  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  "
        "tcgen05.fence::after_thread_sync;\n  mov.u32 %r1, 0;\n";
  }
  body += R"(
  @!%p0 bra ISSUED;
  add.s32 %r4, %r1, %r2;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], %r4;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+17408], [%d2], %r2, [smem];
)";
  if (!a_in_tmem)
    body +=
        "  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+1024], [%d1], %r1, [smem];\n";
  body += wait_barrier(0, 0);
  for (uint32_t step = 0; step < kSteps; ++step) {
    const std::string at = std::to_string(16 * step);
    body += "  ld.global.v2.b64 {%d5, %d6}, [%d3+" + at + "];\n  tcgen05.mma.cta_group::1.kind::f16 [%tm], " +
            (a_in_tmem ? "[%tm+" + std::to_string(256 + 8 * step) + "]" : std::string("%d5")) +
            ", %d6, %r3, " + (step ? "1" : "0") + ";\n";
  }
  body += commit(8) + "ISSUED:\n  bar.warp.sync 0xffffffff;\n" + wait_barrier(8, 0) +
          "  tcgen05.fence::after_thread_sync;\n" + read_out();
  return entry_of(kParameters, body, 128);
}

struct Gemm {
  bool bf16;
  uint32_t m, n;
  Layout a, b;  // a is not used with A in tensor memory
};

// Returns the number of wrong elements.
uint32_t run_gemm(Kernel& kernel, const Gemm& g, bool a_in_tmem) {
  std::vector<uint16_t> a = image(g.a, 0, g.bf16);
  if (a_in_tmem) {  // lane by lane; row m of 64 lies in lane 32 (m / 16) + m % 16
    a.assign(128 * kDepth, 0);
    for (uint32_t m = 0; m < g.m; ++m) {
      const uint32_t lane = g.m == 128 ? m : m / 16 * 32 + m % 16;
      for (uint32_t k = 0; k < kDepth; ++k) a[lane * kDepth + k] = encode(g.bf16, element(0, m, k));
    }
  }
  const std::vector<uint16_t> b = image(g.b, 1, g.bf16);
  std::vector<uint64_t> descriptors;
  for (uint32_t step = 0; step < kSteps; ++step) {
    descriptors.push_back(g.a.descriptor(kSmem + kA, step));
    descriptors.push_back(g.b.descriptor(kSmem + kB, step));
  }
  auto& memory = kernel.device().memory();
  const uint64_t da = kernel.upload(a), db = kernel.upload(b), dd = kernel.upload(descriptors),
                 out = kernel.buffer<float>(128 * 256);
  kernel.run("kernel", {{1, 1, 1}, {128, 1, 1}, kB + 32768}, out, da, uint32_t(a.size() * 2), db,
             uint32_t(b.size() * 2), dd,
             instruction_descriptor(g.bf16, !a_in_tmem && g.a.mn_major, g.b.mn_major, g.m, g.n), g.m, g.n);
  const auto got = kernel.read<float>(out, 128 * 256);
  for (uint64_t address : {da, db, dd, out}) memory.release(address);
  uint32_t wrong = 0;
  for (uint32_t m = 0; m < g.m; ++m) {
    for (uint32_t n = 0; n < g.n; ++n) {
      int expected = 0;
      for (uint32_t k = 0; k < kDepth; ++k) expected += element(0, m, k) * element(1, n, k);
      uint32_t index;
      if (g.m == 128) {
        index = m * 256 + n;
      } else {  // 16x256b: thread and register that hold (lane, column) of a chunk
        const uint32_t lane = m % 16, column = n % 8, thread = lane % 8 * 4 + column / 2,
                       reg = lane / 8 * 2 + column % 2;
        index = (m / 16 * 32 + thread) * 256 + n / 8 * 8 + reg;
      }
      wrong += got[index] != float(expected);
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("one tile with both operands in shared memory") {
  Kernel kernel(gemm_kernel(false));
  for (const uint32_t width : {16u, 32u, 64u, 128u}) {
    for (const bool b_mn : {false, true}) {
      for (const bool a_mn : {false, true}) {
        for (const auto& [m, n] :
             {std::pair{128u, 8u}, {64u, 64u}, {128u, 104u}, {64u, 8u}, {128u, 256u}, {64u, 256u}}) {
          const bool bf16 = (n / 8 + width / 16 + m) % 2;
          const uint32_t other = width == 128 ? 32 : width * 2;  // A and B need not agree
          const Gemm g{bf16, m, n, {width, a_mn, m}, {n == 64 ? other : width, b_mn, n}};
          INFO("M " << m << ", N " << n << ", A " << g.a.width << (a_mn ? " MN" : " K") << ", B " << g.b.width
                    << (b_mn ? " MN" : " K") << (bf16 ? ", bf16" : ", fp16"));
          CHECK(run_gemm(kernel, g, false) == 0);
        }
      }
    }
  }
}

TEST_CASE("one tile with A in tensor memory") {
  Kernel kernel(gemm_kernel(true));
  for (const uint32_t width : {16u, 64u, 128u}) {
    for (const bool b_mn : {false, true}) {
      for (const auto& [m, n] : {std::pair{128u, 16u}, {64u, 64u}, {128u, 128u}, {64u, 256u}, {128u, 256u}}) {
        const bool bf16 = (n / 8 + width / 16) % 2;
        const Gemm g{bf16, m, n, {128, false, m}, {width, b_mn, n}};
        INFO("M " << m << ", N " << n << ", B " << width << (b_mn ? " MN" : " K")
                  << (bf16 ? ", bf16" : ", fp16"));
        CHECK(run_gemm(kernel, g, true) == 0);
      }
    }
  }
}

namespace {

struct TmemShape {
  const char* name;
  uint32_t registers_a_repetition;
  uint32_t lanes;
  // lane and column of thread t, register r
  uint32_t (*lane)(uint32_t t, uint32_t r);
  uint32_t (*column)(uint32_t t, uint32_t r);
};
const TmemShape kShapes[] = {
    {"32x32b", 1, 32, [](uint32_t t, uint32_t) { return t; }, [](uint32_t, uint32_t r) { return r; }},
    {"16x64b", 1, 16, [](uint32_t t, uint32_t) { return t / 4 + 8 * (t % 2); },
     [](uint32_t t, uint32_t r) { return 2 * r + t / 2 % 2; }},
    {"16x128b", 2, 16, [](uint32_t t, uint32_t r) { return t / 4 + 8 * (r % 2); },
     [](uint32_t t, uint32_t r) { return 4 * (r / 2) + t % 4; }},
    {"16x256b", 4, 16, [](uint32_t t, uint32_t r) { return t / 4 + 8 * (r / 2 % 2); },
     [](uint32_t t, uint32_t r) { return 8 * (r / 4) + 2 * (t % 4) + r % 2; }}};

}  // namespace

TEST_CASE("tensor memory in every shape, read and written") {
  for (const TmemShape& shape : kShapes) {
    for (const uint32_t times : {1u, 2u, 16u, 32u, 64u}) {
      for (const uint32_t half : {0u, 16u}) {
        if (shape.lanes == 32 && half) continue;
        if (shape.registers_a_repetition * times > 64 && shape.lanes == 16)
          continue;  // more than the 128 columns written here
        const uint32_t count = times * shape.registers_a_repetition;
        const std::string form = std::string(shape.name) + ".x" + std::to_string(times) + ".b32 ";
        // All of it is first written as lane << 16 | column (32x32b), then read in the shape; then written in
        // the shape as 0x8000'0000 | thread << 16 | register and read as 32x32b.
        std::string body =
            prologue() + allocate_tmem(16, 512) + "  shl.b32 %r20, %warp, 21;\n  add.s32 %r20, %r20, %tm;\n";
        for (uint32_t i = 0; i < 128; ++i)
          body += "  shl.b32 %r1, %tid32, 16;\n  or.b32 %v" + std::to_string(i) + ", %r1, " +
                  std::to_string(i) + ";\n";
        body += "  tcgen05.st.sync.aligned.32x32b.x128.b32 [%r20], " + registers(128) +
                ";\n  tcgen05.wait::st.sync.aligned;\n";
        body += "  add.s32 %r21, %r20, " + std::to_string(half << 16) + ";\n  tcgen05.ld.sync.aligned." +
                form + registers(count) + ", [%r21];\n  tcgen05.wait::ld.sync.aligned;\n";
        body += "  mul.wide.u32 %d1, %tid32, 512;\n  add.s64 %d1, %d1, %out;\n";
        for (uint32_t i = 0; i < count; ++i)
          body += "  st.global.b32 [%d1+" + std::to_string(4 * i) + "], %v" + std::to_string(i) + ";\n";
        for (uint32_t i = 0; i < count; ++i)
          body += "  or.b32 %v" + std::to_string(i) + ", %r1, " + std::to_string(0x80000000u | i) + ";\n";
        body += "  tcgen05.st.sync.aligned." + form + "[%r21], " + registers(count) +
                ";\n  tcgen05.wait::st.sync.aligned;\n";
        body += "  tcgen05.ld.sync.aligned.32x32b.x128.b32 " + registers(128) +
                ", [%r20];\n  tcgen05.wait::ld.sync.aligned;\n";
        for (uint32_t i = 0; i < 128; ++i)
          body +=
              "  st.global.b32 [%d1+" + std::to_string(65536 + 4 * i) + "], %v" + std::to_string(i) + ";\n";
        Kernel kernel(entry_of(".param .u64 out", body + free_tmem(512) + "  ret;\n", 128));
        const uint64_t out = kernel.buffer<uint32_t>(2 * 128 * 128);
        kernel.run("kernel", {{1, 1, 1}, {128, 1, 1}, 64}, out);
        const auto got = kernel.read<uint32_t>(out, 2 * 128 * 128);
        std::vector<uint32_t> after(128 * 128);
        for (uint32_t lane = 0; lane < 128; ++lane) {
          for (uint32_t c = 0; c < 128; ++c) after[lane * 128 + c] = lane << 16 | c;
        }
        uint32_t wrong = 0;
        for (uint32_t thread = 0; thread < 128; ++thread) {
          for (uint32_t r = 0; r < count; ++r) {
            const uint32_t lane = thread / 32 * 32 + half + shape.lane(thread % 32, r),
                           column = shape.column(thread % 32, r);
            wrong += got[thread * 128 + r] != (lane << 16 | column);
            after[lane * 128 + column] = 0x80000000u | thread << 16 | r;
          }
        }
        for (uint32_t i = 0; i < 128 * 128; ++i) wrong += got[128 * 128 + i] != after[i];
        INFO(form << "from lane " << half);
        CHECK(wrong == 0);
      }
    }
  }
}
