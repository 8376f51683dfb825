// SPDX-License-Identifier: Apache-2.0
#include "grammar.h"

#include <unordered_map>

namespace fa4::sim::ptx {
namespace {

// Base opcodes of PTX ISA 9.0 (9.7), by the fewest operands that any of their forms has.
struct Opcodes {
  uint32_t operands;
  std::string_view names;
};
constexpr Opcodes kOpcodes[] = {
    {0, "barrier brkpt cp exit fence griddepcontrol membar ret tcgen05 trap wgmma"},
    {1,
     "activemask bar bra call createpolicy mbarrier nanosleep pmevent prefetch prefetchu setmaxnreg "
     "stackrestore stacksave tensormap"},
    {2,
     "abs alloca applypriority bfind brev brx clusterlaunchcontrol clz cnot cos cvt cvta discard elect ex2 "
     "getctarank "
     "isspacep istypep ld ldmatrix ldu lg2 mov movmatrix multimem neg not popc rcp red rsqrt sin sqrt st "
     "stmatrix suld suq sured sust "
     "tanh testp tex tld4 txq vote wmma"},
    {3,
     "add addc and atom bmsk copysign div mapa match max min mul mul24 or redux rem set setp shl shr sub "
     "subc szext vabsdiff "
     "vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 "
     "vshl vshr vsub vsub2 "
     "vsub4 xor"},
    {4, "bfe dp2a dp4a fma fns mad mad24 madc mma prmt sad selp shf shfl slct vmad"},
    {5, "bfi lop3"},
};

const std::unordered_map<std::string_view, uint32_t>& fewest_operands() {
  static const auto& table = *new auto([] {  // never destroyed: programs load modules in static destructors
    std::unordered_map<std::string_view, uint32_t> t;
    for (const Opcodes& group : kOpcodes) {
      for (std::string_view rest = group.names; !rest.empty();) {
        const size_t end = std::min(rest.find(' '), rest.size());
        t.emplace(rest.substr(0, end), group.operands);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    return t;
  }());
  return table;
}

}  // namespace

void check_instructions(const Module& module) {
  const auto& known = fewest_operands();
  for (const Function& function : module.functions) {
    for (const Instruction& i : function.instructions) {
      const auto refuse = [&](const std::string& message) {
        throw Error(i.location.line, i.location.column, message, line_text(module, i.location.line));
      };
      const auto found = known.find(i.parts[0]);
      if (found == known.end()) refuse("unknown instruction '" + std::string(i.opcode) + "'");
      if (i.operands.size() < found->second) {
        refuse("'" + std::string(i.opcode) + "' has " + std::to_string(i.operands.size()) +
               " operands; more are needed");
      }
    }
  }
}

}  // namespace fa4::sim::ptx
