// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f32, f64, f16 and bf16, as far as its results are exact or correctly rounded.
#include <cstdlib>

#include "row.h"

namespace fa4::conformance {

void add_float_rows(Table& t) {
  const std::string roundings[] = {".rn", ".rz", ".rm", ".rp"};
  t.family({"f32 arithmetic", "9.7.3",
            "rounded once as the modifier says; every NaN result is 0x7fffffff; .ftz flushes subnormal "
            "inputs and results to zero of their sign"});
  for (const char* opcode : {"add", "sub", "mul"}) {
    for (const char* round : {"", ".rn", ".rz", ".rm", ".rp"}) {
      for (const char* flags : {"", ".ftz", ".sat", ".ftz.sat"}) {
        t.add(std::string(opcode) + round + flags + ".f32", "f=ff", "",
              std::string(flags).ends_with("sat") ? "the result is clamped to [0, 1]; a NaN becomes +0" : "");
      }
    }
  }
  for (const std::string& round : roundings) {
    for (const char* flags : {"", ".ftz", ".sat", ".ftz.sat"}) {
      t.add("fma" + round + flags + ".f32", "f=fff", "",
            std::string(flags).ends_with("sat") ? "the result is clamped to [0, 1]; a NaN becomes +0"
                                                : "one rounding, of the exact product and sum");
    }
    t.add("mad" + round + ".f32", "f=fff", "", "mad is fma");
    for (const char* flags : {"", ".ftz"}) {
      t.add("div" + round + flags + ".f32", "f=ff", "", "correctly rounded");
      t.add("rcp" + round + flags + ".f32", "f=f", "", "correctly rounded");
      t.add("sqrt" + round + flags + ".f32", "f=f", "",
            "correctly rounded; a negative number other than -0 gives NaN");
    }
  }
  for (const char* flags : {"", ".ftz"}) {
    t.add(std::string("neg") + flags + ".f32", "f=f", "", "flips the sign bit, also of a NaN");
    t.add(std::string("abs") + flags + ".f32", "f=f", "", "clears the sign bit, also of a NaN");
    for (const char* opcode : {"min", "max"}) {
      for (const char* mode : {"", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"}) {
        t.add(std::string(opcode) + flags + mode + ".f32", "f=ff", "",
              "-0 is below +0; a NaN loses, or wins with .NaN; .xorsign.abs takes magnitudes and gives the "
              "product's sign");
      }
    }
  }
  t.add("copysign.f32", "f=ff", "", "the sign of a, the magnitude of b");
  for (const char* what : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
    t.add(std::string("testp.") + what + ".f32 %p, %a; selp.b32 %d, 1, 0, %p;", "r=f",
          std::string("testp.") + what + ".f32", "classes of numbers by their bits");
    t.add(std::string("testp.") + what + ".f64 %p, %a; selp.b32 %d, 1, 0, %p;", "r=d",
          std::string("testp.") + what + ".f64", "classes of numbers by their bits");
  }

  t.family({"approximate functions", "9.7.3",
            "a small table with quadratic interpolation and the scaling of subnormal numbers around it, the "
            "same bits for every input"});
  for (const char* form : {"ex2.approx", "rcp.approx", "rsqrt.approx", "sqrt.approx", "lg2.approx",
                           "sin.approx", "cos.approx"}) {
    t.add(std::string(form) + ".f32", "f=f");
    t.add(std::string(form) + ".ftz.f32", "f=f");
  }
  t.add("tanh.approx.f32", "f=f");
  for (const char* form : {"div.approx", "div.full"}) {
    t.add(std::string(form) + ".f32", "f=ff");
    t.add(std::string(form) + ".ftz.f32", "f=ff");
  }
  t.add("ex2.approx.f16", "x=x");
  t.add("ex2.approx.f16x2", "X=X");
  t.add("ex2.approx.ftz.bf16", "y=y");
  t.add("ex2.approx.ftz.bf16x2", "Y=Y");
  t.add("tanh.approx.f16", "x=x");
  t.add("tanh.approx.f16x2", "X=X");
  t.add("tanh.approx.bf16", "y=y");
  t.add("tanh.approx.bf16x2", "Y=Y");

  t.family({"f64 arithmetic", "9.7.3",
            "rounded once as the modifier says; every NaN result is 0xfff8000000000000"});
  for (const char* opcode : {"add", "sub", "mul"}) {
    for (const char* round : {"", ".rn", ".rz", ".rm", ".rp"})
      t.add(std::string(opcode) + round + ".f64", "d=dd");
  }
  for (const std::string& round : roundings) {
    t.add("fma" + round + ".f64", "d=ddd");
    t.add("mad" + round + ".f64", "d=ddd");
    t.add("div" + round + ".f64", "d=dd");
    t.add("rcp" + round + ".f64", "d=d");
    t.add("sqrt" + round + ".f64", "d=d");
  }
  t.add("neg.f64", "d=d", "", "flips the sign bit, also of a NaN");
  t.add("abs.f64", "d=d", "", "clears the sign bit, also of a NaN");
  t.add("min.f64", "d=dd", "", "-0 is below +0; a NaN loses");
  t.add("max.f64", "d=dd", "", "-0 is below +0; a NaN loses");
  t.add("copysign.f64", "d=dd", "", "the sign of a, the magnitude of b");
}

void add_half_rows(Table& t) {
  struct Format {
    const char* type;
    char letter;
    bool brain;
  };
  const Format formats[] = {
      {"f16", 'x', false}, {"f16x2", 'X', false}, {"bf16", 'y', true}, {"bf16x2", 'Y', true}};
  for (const Format& f : formats) {
    const std::string one(1, f.letter), unary = one + "=" + f.letter, binary = unary + f.letter,
                                        ternary = binary + f.letter;
    t.family({f.brain ? "bf16 arithmetic" : "f16 arithmetic", "9.7.4",
              "rounded once to nearest even; every NaN result is 0x7fff"});
    const std::vector<std::string> flags =
        f.brain ? std::vector<std::string>{""} : std::vector<std::string>{"", ".ftz", ".sat", ".ftz.sat"};
    for (const char* opcode : {"add", "sub", "mul"}) {
      for (const std::string& flag : flags) {
        t.add(std::string(opcode) + flag + "." + f.type, binary);
        t.add(std::string(opcode) + ".rn" + flag + "." + f.type, binary);
      }
    }
    for (const std::string& flag : flags) t.add("fma.rn" + flag + "." + f.type, ternary);
    t.add(std::string("fma.rn.relu.") + f.type, ternary, "",
          "a negative result becomes +0; a NaN stays a NaN");
    if (!f.brain)
      t.add(std::string("fma.rn.ftz.relu.") + f.type, ternary, "",
            "a negative result becomes +0; a NaN stays a NaN");
    t.add(std::string("neg.") + f.type, unary, "", "flips the sign bit");
    t.add(std::string("abs.") + f.type, unary, "", "clears the sign bit");
    if (!f.brain) {
      t.add(std::string("neg.ftz.") + f.type, unary, "", "flips the sign bit; subnormal numbers become zero");
      t.add(std::string("abs.ftz.") + f.type, unary, "",
            "clears the sign bit; subnormal numbers become zero");
    }
    for (const char* opcode : {"min", "max"}) {
      for (const char* mode : {"", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"}) {
        t.add(std::string(opcode) + mode + "." + f.type, binary, "",
              "-0 is below +0; a NaN loses, or wins with .NaN; .xorsign.abs takes magnitudes and gives the "
              "product's sign");
        if (!f.brain)
          t.add(std::string(opcode) + ".ftz" + mode + "." + f.type, binary, "",
                "-0 is below +0; a NaN loses, or wins with .NaN; subnormal numbers are zero");
      }
    }
  }
}

void add_conversion_rows(Table& t) {
  struct Integer {
    const char* type;
    char letter;
  };
  const Integer integers[] = {{"s8", 'h'},  {"u8", 'h'},  {"s16", 'h'}, {"u16", 'h'},
                              {"s32", 'r'}, {"u32", 'r'}, {"s64", 'l'}, {"u64", 'l'}};
  const auto add = [&](const std::string& op, char d, char s, const std::string& belief = "") {
    t.add(op, std::string(1, d) + "=" + s, "", belief);
  };
  t.family({"conversions between integers", "9.7.9.21",
            "narrowing chops, widening extends as the source's sign says; .sat clamps"});
  for (const Integer& d : integers) {
    for (const Integer& s : integers) {
      if (std::string_view(d.type) == s.type) continue;
      add(std::string("cvt.") + d.type + "." + s.type, d.letter, s.letter);
      // Where every value fits, .sat is no form.
      const int d_bits = std::atoi(d.type + 1), s_bits = std::atoi(s.type + 1);
      const bool d_signed = d.type[0] == 's', s_signed = s.type[0] == 's';
      const bool fits =
          d_signed ? (s_signed ? d_bits >= s_bits : d_bits > s_bits) : !s_signed && d_bits >= s_bits;
      if (!fits) add(std::string("cvt.sat.") + d.type + "." + s.type, d.letter, s.letter);
    }
  }
  for (const char* d : {"s8", "u8", "s16", "u16"}) {
    t.add(std::string("cvt.") + d + ".s32", "r=r", std::string("cvt.") + d + ".s32 in a wide register",
          "the result fills a wider register: signed types extend the sign, unsigned ones zero");
    t.add(std::string("cvt.") + d + ".u32", "r=r", std::string("cvt.") + d + ".u32 in a wide register",
          "the result fills a wider register: signed types extend the sign, unsigned ones zero");
  }

  struct Float {
    const char* type;
    char letter;
  };
  const Float floats[] = {{"f32", 'f'}, {"f64", 'd'}, {"f16", 'x'}, {"bf16", 'y'}};
  const char* integral[] = {".rni", ".rzi", ".rmi", ".rpi"};
  const char* rounding[] = {".rn", ".rz", ".rm", ".rp"};
  t.family({"conversions from floats to integers", "9.7.9.21",
            "out of range saturates; a NaN gives 0, and 0x8000000000000000 in 64 bits"});
  for (const Float& s : floats) {
    for (const Integer& d : integers) {
      if (s.letter == 'y' && std::string_view(d.type).size() == 2) continue;  // no bf16 to or from 8 bits
      for (const char* round : integral)
        add(std::string("cvt") + round + "." + d.type + "." + s.type, d.letter, s.letter);
      if (s.letter == 'f')
        add(std::string("cvt.rzi.ftz.") + d.type + ".f32", d.letter, 'f',
            "a subnormal number is 0 before it is rounded");
      if (s.letter == 'f')
        add(std::string("cvt.rpi.ftz.") + d.type + ".f32", d.letter, 'f',
            "a subnormal number is 0 before it is rounded");
    }
    if (s.letter != 'y')
      add(std::string("cvt.rzi.sat.s32.") + s.type, 'r', s.letter,
          ".sat adds nothing to what a conversion to an integer does");
  }
  t.family({"conversions from integers to floats", "9.7.9.21", "rounded once as the modifier says"});
  for (const Float& d : floats) {
    for (const Integer& s : integers) {
      if (d.letter == 'y' && std::string_view(s.type).size() == 2) continue;
      for (const char* round : rounding)
        add(std::string("cvt") + round + "." + d.type + "." + s.type, d.letter, s.letter);
    }
  }
  t.add("cvt.rn.sat.f32.s32", "f=r", "", "clamped to [0, 1]");
  t.family({"conversions between floats", "9.7.9.21",
            "rounded once; a NaN becomes the target format's canonical NaN"});
  for (const char* round : rounding) {
    for (const char* flags : {"", ".ftz", ".sat"}) {
      add(std::string("cvt") + round + flags + ".f32.f64", 'f', 'd',
          flags[0] ? "a subnormal result is flushed with .ftz, clamped to [0, 1] with .sat" : "");
    }
  }
  add("cvt.f64.f32", 'd', 'f');
  add("cvt.ftz.f64.f32", 'd', 'f', "a subnormal number is 0");
  add("cvt.sat.f64.f32", 'd', 'f', "clamped to [0, 1]; a NaN becomes +0");
  for (const char* round : rounding) {
    add(std::string("cvt") + round + ".f16.f32", 'x', 'f');
    add(std::string("cvt") + round + ".f16.f64", 'x', 'd');
    add(std::string("cvt") + round + ".bf16.f32", 'y', 'f');
    add(std::string("cvt") + round + ".bf16.f64", 'y', 'd');
    add(std::string("cvt") + round + ".bf16.f16", 'y', 'x');
    add(std::string("cvt") + round + ".f16.bf16", 'x', 'y');
  }
  for (const char* flags : {".ftz", ".sat", ".relu", ".satfinite", ".relu.satfinite"}) {
    const bool relu = std::string_view(flags).find("relu") != std::string_view::npos;
    if (std::string_view(flags) != ".ftz" && std::string_view(flags) != ".sat") {
      add(std::string("cvt.rn") + flags + ".bf16.f32", 'y', 'f',
          relu ? "a negative result becomes +0, a NaN the canonical NaN"
               : "infinities become the largest finite number");
    }
    add(std::string("cvt.rn") + flags + ".f16.f32", 'x', 'f',
        relu ? "a negative result becomes +0, a NaN the canonical NaN"
             : "subnormal inputs are zero (.ftz), the result is in [0, 1] (.sat), infinities become the "
               "largest finite number (.satfinite)");
  }
  for (const char* type : {"f16x2", "bf16x2"}) {
    const char letter = type[0] == 'f' ? 'X' : 'Y';
    for (const char* flags : {"", ".relu", ".satfinite", ".relu.satfinite"}) {
      for (const char* round : {".rn", ".rz"}) {
        t.add(std::string("cvt") + round + flags + "." + type + ".f32", std::string(1, letter) + "=ff", "",
              "a goes to the upper half, b to the lower");
      }
    }
  }
  add("cvt.f32.f16", 'f', 'x');
  add("cvt.ftz.f32.f16", 'f', 'x', "subnormal f16 numbers are normal in f32");
  add("cvt.sat.f32.f16", 'f', 'x', "clamped to [0, 1]; a NaN becomes +0");
  add("cvt.f32.bf16", 'f', 'y');
  add("cvt.ftz.f32.bf16", 'f', 'y', "a subnormal number becomes zero");
  add("cvt.f64.f16", 'd', 'x');
  add("cvt.f64.bf16", 'd', 'y');
  for (const char* round : integral) {
    for (const char* flags : {"", ".ftz", ".sat"})
      add(std::string("cvt") + round + flags + ".f32.f32", 'f', 'f',
          "rounded to an integral value, the sign kept");
    add(std::string("cvt") + round + ".f64.f64", 'd', 'd', "rounded to an integral value, the sign kept");
    add(std::string("cvt") + round + ".f16.f16", 'x', 'x', "rounded to an integral value, the sign kept");
    add(std::string("cvt") + round + ".bf16.bf16", 'y', 'y', "rounded to an integral value, the sign kept");
  }
  add("cvt.sat.f32.f32", 'f', 'f', "clamped to [0, 1]; a NaN becomes +0");
  add("cvt.ftz.f32.f32", 'f', 'f', "a subnormal number becomes zero");
  for (const char* round : {".rna", ".rn", ".rz", ".rn.relu", ".rz.relu", ".rna.satfinite"}) {
    t.add(std::string("cvt") + round + ".tf32.f32", "f=f", "",
          "10 bits of fraction remain; .rna rounds ties away from zero");
  }
  for (const char* type : {"e4m3x2", "e5m2x2"}) {
    t.add(std::string("cvt.rn.satfinite.") + type + ".f32 %d, %a, %b;", "h=ff",
          std::string("cvt.rn.satfinite.") + type + ".f32",
          "a goes to the upper byte; out of range becomes the largest finite number");
    t.add(std::string("cvt.rn.satfinite.relu.") + type + ".f32 %d, %a, %b;", "h=ff",
          std::string("cvt.rn.satfinite.relu.") + type + ".f32",
          "a goes to the upper byte; negative becomes 0");
    t.add(std::string("cvt.rn.satfinite.") + type + ".f16x2", "h=X", "",
          "halves become bytes in the same order");
    t.add(std::string("cvt.rn.f16x2.") + type, "X=h", "", "bytes become halves in the same order, exactly");
  }
}

}  // namespace fa4::conformance
