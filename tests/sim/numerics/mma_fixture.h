// SPDX-License-Identifier: Apache-2.0
// Results of an NVIDIA H200 (CUDA driver API 13000), as hashes; written by mma_fixture.cu.
#pragma once

#include <cstdint>

namespace fa4::sim::fixture {

inline constexpr uint32_t mma_cases_per_kind = 256;
// By instruction of mma_cases.h, and kind.
inline constexpr uint64_t mma_hashes[12][15] = {
    {  // mma.m16n8k16 f16
     0x22799c135980959b,  // wide
     0x45fa759521033b55,  // subnormal inputs
     0x890e751d37502864,  // tiny
     0x2c9215130518aa74,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0x9ff49419d8d0c034,  // below subnormal
     0xd6786e5577273886,  // overflow
     0xed5571aa7e69b482,  // specials
     0x59880b92d078632a,  // large c
     0x531e0ea6eafb304e,  // near four
     0x0eca044c789d8583,  // tiny and zeros
     0x1f21124fdc9087c5,  // dominant c
     0x0ffdfbb4365310a3,  // subnormal c
     0x4fd1a385d899717c,  // cancelling
     0xc973e0daad17d599,  // small sums
    },
    {  // mma.m16n8k16 bf16
     0xdfe0ef3446688559,  // wide
     0x4118abe05111a2f7,  // subnormal inputs
     0x071928120f26f3d7,  // tiny
     0x48c9e74883491c0f,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0xde913bd69593032c,  // below subnormal
     0xb7ac4e5d98204a46,  // overflow
     0x1b6e6c4e3879878e,  // specials
     0x245387aa585e10a7,  // large c
     0xc316305130f7fb70,  // near four
     0xff08b657a3b70484,  // tiny and zeros
     0x0fd7c917e4309e6b,  // dominant c
     0x6ff95cb3fa5e6e70,  // subnormal c
     0x7ec15122aebb981d,  // cancelling
     0x662a4406d645908d,  // small sums
    },
    {  // mma.m16n8k8 f16
     0x360b9c36b203ecfe,  // wide
     0x836853633c89d5f4,  // subnormal inputs
     0xf928fde4befa3a93,  // tiny
     0x00ad3c33556f0c59,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0x0290f8976e04f7da,  // below subnormal
     0xd0b9d678d0c6d066,  // overflow
     0xb2a4e3af2692eaf2,  // specials
     0x044caca0f3412ce9,  // large c
     0x4c29543521bd38a8,  // near four
     0x1793b0a92a0e9453,  // tiny and zeros
     0x334e593b4f37f013,  // dominant c
     0x254884d0fe69df23,  // subnormal c
     0x9f08502e0aef8d68,  // cancelling
     0xd1cdf882d9916f6f,  // small sums
    },
    {  // mma.m16n8k8 bf16
     0xfd2a87c2963b2552,  // wide
     0x4118abe05111a2f7,  // subnormal inputs
     0x42039248e65e7921,  // tiny
     0x0e522a6c707fa9ff,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0x8b9bd69ede1b8a4b,  // below subnormal
     0x79d998ca07c6358a,  // overflow
     0xe171cb643f7f80d9,  // specials
     0x099d419f5e47b825,  // large c
     0x947c8069fb05343b,  // near four
     0xa5e84de126eba844,  // tiny and zeros
     0x6555a37a83b2b51c,  // dominant c
     0xacd26ad2fee03362,  // subnormal c
     0xd637d57e8f48e2a8,  // cancelling
     0x47618dbbf528633c,  // small sums
    },
    {  // mma.m16n8k4 tf32
     0x5bbebbbd03526d41,  // wide
     0xf75bd2daa90471f3,  // subnormal inputs
     0x6ff65dbffdcea40f,  // tiny
     0x8ca2ff7711060f61,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0x42538285f81f8533,  // below subnormal
     0x4e8f2e53d870f6e1,  // overflow
     0x391bd2bdbb120589,  // specials
     0x8c1963862c283955,  // large c
     0x729b1784098f7fa6,  // near four
     0x6bd78007240afe06,  // tiny and zeros
     0xec80de195eece164,  // dominant c
     0x8e4b8292cf2d1c54,  // subnormal c
     0xaf07cb76a80703fa,  // cancelling
     0x8fb06d5e5a76f9c5,  // small sums
    },
    {  // mma.m16n8k8 tf32
     0x401ec6ad080349ff,  // wide
     0xf75bd2daa90471f3,  // subnormal inputs
     0xc9dde3aa4a560dd7,  // tiny
     0x5f4aa129a9028088,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0xa653c219ee472a6a,  // below subnormal
     0x022bac7fd5810525,  // overflow
     0xbce479b08f3adf4d,  // specials
     0x689189332b03a09a,  // large c
     0xe5375eb2cb05997c,  // near four
     0xe2ff5bcb1fae8459,  // tiny and zeros
     0x8c6c9e4f7bfdecc2,  // dominant c
     0xe140153707b97404,  // subnormal c
     0xc062dc63870403db,  // cancelling
     0x757b43badbc97dbd,  // small sums
    },
    {  // mma.m16n8k16 f16, f16 accumulators
     0x7123778d139ac273,  // wide
     0x23ca1cc32bda62ce,  // subnormal inputs
     0x950aa6ddbe171399,  // tiny
     0x4d0e6fa76a5b2067,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0xd13a740361a7da72,  // below subnormal
     0xa34096fb4471227d,  // overflow
     0x5c5d03a8afb29043,  // specials
     0x2375f828c185f1d6,  // large c
     0x00656c67077cd108,  // near four
     0xfb2ecc2e9d1a4e4c,  // tiny and zeros
     0x903b2237fd7b18f5,  // dominant c
     0xebba345506abd18f,  // subnormal c
     0x3cca2eabfbd3f2d1,  // cancelling
     0x4db924912911b3cd,  // small sums
    },
    {  // mma.m16n8k8 f16, f16 accumulators
     0x9dce1267a247ad76,  // wide
     0x0cc8a975e7fc6de7,  // subnormal inputs
     0x0a718a2abb63d457,  // tiny
     0xb444af9189e3ef71,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0xf58f46989df7127d,  // below subnormal
     0x51c4e0f7bd0d8ffa,  // overflow
     0x987ea8c6eb3436fa,  // specials
     0x03cf32ed00fdcba3,  // large c
     0x5b19efda3ccc2faf,  // near four
     0x98d61acc615b007e,  // tiny and zeros
     0x8006ca73d06ef95c,  // dominant c
     0x13b0e182c348d5e9,  // subnormal c
     0xf34d8fabee94053c,  // cancelling
     0x6f51aa56905dfb73,  // small sums
    },
    {  // wgmma.m64n8k16 f16
     0x22799c135980959b,  // wide
     0x45fa759521033b55,  // subnormal inputs
     0x890e751d37502864,  // tiny
     0x2c9215130518aa74,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0x9ff49419d8d0c034,  // below subnormal
     0xd6786e5577273886,  // overflow
     0xed5571aa7e69b482,  // specials
     0x59880b92d078632a,  // large c
     0x531e0ea6eafb304e,  // near four
     0x0eca044c789d8583,  // tiny and zeros
     0x1f21124fdc9087c5,  // dominant c
     0x0ffdfbb4365310a3,  // subnormal c
     0x4fd1a385d899717c,  // cancelling
     0xc973e0daad17d599,  // small sums
    },
    {  // wgmma.m64n8k16 bf16
     0xdfe0ef3446688559,  // wide
     0x4118abe05111a2f7,  // subnormal inputs
     0x071928120f26f3d7,  // tiny
     0x48c9e74883491c0f,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0xde913bd69593032c,  // below subnormal
     0xb7ac4e5d98204a46,  // overflow
     0x1b6e6c4e3879878e,  // specials
     0x245387aa585e10a7,  // large c
     0xc316305130f7fb70,  // near four
     0xff08b657a3b70484,  // tiny and zeros
     0x0fd7c917e4309e6b,  // dominant c
     0x6ff95cb3fa5e6e70,  // subnormal c
     0x7ec15122aebb981d,  // cancelling
     0x662a4406d645908d,  // small sums
    },
    {  // wgmma.m64n8k8 tf32
     0x401ec6ad080349ff,  // wide
     0xf75bd2daa90471f3,  // subnormal inputs
     0xc9dde3aa4a560dd7,  // tiny
     0x5f4aa129a9028088,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0xa653c219ee472a6a,  // below subnormal
     0x022bac7fd5810525,  // overflow
     0xbce479b08f3adf4d,  // specials
     0x689189332b03a09a,  // large c
     0xe5375eb2cb05997c,  // near four
     0xe2ff5bcb1fae8459,  // tiny and zeros
     0x8c6c9e4f7bfdecc2,  // dominant c
     0xe140153707b97404,  // subnormal c
     0xc062dc63870403db,  // cancelling
     0x757b43badbc97dbd,  // small sums
    },
    {  // wgmma.m64n8k16 f16, f16 accumulators
     0x7123778d139ac273,  // wide
     0x23ca1cc32bda62ce,  // subnormal inputs
     0x950aa6ddbe171399,  // tiny
     0x4d0e6fa76a5b2067,  // tiny without c
     0xc74b47c8c74a2325,  // zeros
     0xd13a740361a7da72,  // below subnormal
     0xa34096fb4471227d,  // overflow
     0x5c5d03a8afb29043,  // specials
     0x2375f828c185f1d6,  // large c
     0x00656c67077cd108,  // near four
     0xfb2ecc2e9d1a4e4c,  // tiny and zeros
     0x903b2237fd7b18f5,  // dominant c
     0xebba345506abd18f,  // subnormal c
     0x3cca2eabfbd3f2d1,  // cancelling
     0x4db924912911b3cd,  // small sums
    },
};

}  // namespace fa4::sim::fixture
