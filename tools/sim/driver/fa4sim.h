/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libfa4sim.so exports beyond the CUDA driver functions: the parameters of the simulated GPU, and what
 * can be read from it after a launch. All functions are thread-safe; a status of 0 is success, otherwise
 * fa4sim_last_error() has a sentence. For programs that do not know this header, cuInit reads environment
 * variables: FA4SIM_GPU (sm_90, sm_100 or sm_103), FA4SIM_SMS, FA4SIM_HOST_THREADS and FA4SIM_BUDGET (numbers) set the parameters of fa4sim_config;
 * FA4SIM_SEED=n is fa4sim_set_adversarial(n, 0); FA4SIM_MODEL=silicon lets a program rely on what hardware does beside
 * the PTX ISA (isa, the default); FA4SIM_CHECK=1 turns the checker on and prints findings and faults to stderr
 * after each launch, and their number when the program ends; FA4SIM_RECORD=FILE writes what one CTA of each launch does to
 * synchronise (fa4sim_sync, below), FA4SIM_RECORD_CTA=n chooses it (0); FA4SIM_LOG=1 prints the sentence of every call that
 * fails to stderr.
 */
#ifndef FA4_SIM_FA4SIM_H
#define FA4_SIM_FA4SIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FA4SIM_API __attribute__((visibility("default")))

typedef struct fa4sim_config {
  uint32_t struct_size;  /* sizeof(fa4sim_config) */
  uint32_t sm_count;     /* 0: as many as the GPU has, 148 or 132 */
  uint32_t host_threads; /* 0: all cores. Results do not depend on it */
  uint32_t gpu; /* which GPU it is: 90 (an H200), 100 (a B200) or 103 (a B300); 0: 100, after cuInit the one that is there.
                   It cannot change after cuInit */
  uint64_t
      instruction_budget; /* warp instructions a CTA may execute before the run ends with a report; 0: 2^32 */
} fa4sim_config;

#define FA4SIM_MAX_WARPS 64

/* Counts of one launch, summed over its CTAs. */
typedef struct fa4sim_warp_counters {
  uint64_t warp_instructions;
  uint64_t thread_instructions; /* warp instructions x active lanes */
  uint64_t mma;                 /* tcgen05.mma issued */
  uint64_t commits;             /* tcgen05.commit issued */
  uint64_t box_loads;           /* cp.async.bulk.tensor, global to shared */
  uint64_t box_load_bytes;
  uint64_t box_stores;
  uint64_t box_store_bytes;
  uint64_t tmem_loads; /* warp-wide tcgen05.ld */
  uint64_t tmem_load_bytes;
  uint64_t tmem_stores;
  uint64_t tmem_store_bytes;
  uint64_t barrier_arrivals; /* mbarrier arrivals by threads of the warp, tx arrivals included */
  uint64_t barrier_waits;    /* successful mbarrier waits, counted once a warp */
  uint64_t parked;           /* waits that did not succeed at once */
} fa4sim_warp_counters;

typedef struct fa4sim_counters {
  uint64_t ctas;
  uint64_t thread_instructions;
  uint64_t warp_instructions;
  uint64_t mma_flop;           /* 2 x multiply-adds of the tensor core */
  uint64_t longest_cta_cycles; /* simulated cycles of the slowest CTA under the engine's nominal timing */
  uint64_t total_cta_cycles;   /* summed over CTAs */
  double wall_seconds;         /* host time of the launch */
  uint32_t host_threads;       /* used */
  uint32_t warps;              /* warps a CTA */
  fa4sim_warp_counters warp[FA4SIM_MAX_WARPS]; /* by warp index in the CTA */
} fa4sim_counters;

/* One event of the traced CTA. Times are simulated cycles from the start of the CTA. */
typedef enum fa4sim_event_kind {
  FA4SIM_EVENT_MMA = 0, /* address: D column; source: A column if a_in_tmem, else A shared address; other: B
                           shared address */
  FA4SIM_EVENT_COMMIT = 1,    /* address: mbarrier's shared address; end: when it arrived */
  FA4SIM_EVENT_BOX_LOAD = 2,  /* address: destination; coordinates; bytes */
  FA4SIM_EVENT_BOX_STORE = 3, /* address: source; coordinates; bytes */
  FA4SIM_EVENT_TMEM_LOAD = 4, /* address: column; bytes */
  FA4SIM_EVENT_TMEM_STORE = 5,
  FA4SIM_EVENT_WAIT = 6, /* address: mbarrier's shared address; begin..end: how long the warp was parked */
  FA4SIM_EVENT_SPAN = 7  /* a warp from its first to its last instruction */
} fa4sim_event_kind;

typedef struct fa4sim_event {
  uint64_t begin, end; /* cycles: issue, landing */
  uint32_t kind;       /* fa4sim_event_kind */
  uint32_t warp;       /* that issued it */
  uint32_t address, source, other;
  uint32_t a_in_tmem;
  uint32_t accumulate;
  uint32_t bytes;
  int32_t coordinates[5];
} fa4sim_event;

/* Applies from the next launch. May be called before cuInit, and then goes before the environment. */
FA4SIM_API int fa4sim_configure(const fa4sim_config* config);
/* struct_size must be set. Gives what is in force: no zeros for defaults in sm_count and gpu. */
FA4SIM_API int fa4sim_get_config(fa4sim_config* config);

/* Of the last launch. Questions about it wait for a launch that runs in another thread. */
FA4SIM_API int fa4sim_get_counters(fa4sim_counters* counters);
/* Writes up to `capacity` entries and returns how many there are: simulated cycles, one a CTA. */
FA4SIM_API uint64_t fa4sim_get_cta_cycles(uint64_t* cycles, uint64_t capacity);
/* Which CTA the next launches trace; -1: none (the default). */
FA4SIM_API int fa4sim_trace_cta(int64_t cta);
/* Writes up to `capacity` events of the traced CTA and returns how many there are. */
FA4SIM_API uint64_t fa4sim_get_trace(fa4sim_event* events, uint64_t capacity);

/*
 * What the warps of a CTA did to synchronise, each warp in its order: a model of time replays it. Costs nothing while it is
 * not asked for.
 */
typedef enum fa4sim_sync_kind {
  FA4SIM_SYNC_INIT = 0,           /* mbarrier.init; address */
  FA4SIM_SYNC_ARRIVE = 1,         /* on the mbarrier at address; phase: in which it counts */
  FA4SIM_SYNC_WAIT = 2,           /* a test_wait or try_wait that succeeded; phase: the one that was complete; -1: none had to be */
  FA4SIM_SYNC_MMA = 3,            /* tcgen05.mma or a warp's wgmma.mma_async; address: D column; m, n */
  FA4SIM_SYNC_COMMIT = 4,         /* tcgen05.commit; address, phase as for an arrival */
  FA4SIM_SYNC_COPY_IN = 5,        /* bulk copy into shared memory; address, phase: of its mbarrier; bytes */
  FA4SIM_SYNC_COPY_OUT = 6,       /* bulk copy to global memory; bytes */
  FA4SIM_SYNC_TMEM_LOAD = 7,      /* address: column; bytes */
  FA4SIM_SYNC_TMEM_STORE = 8,
  FA4SIM_SYNC_CTA_BARRIER = 9,    /* bar, barrier.cta; address: its id; phase: how often it had opened before */
  FA4SIM_SYNC_CLUSTER_ARRIVE = 10,
  FA4SIM_SYNC_CLUSTER_WAIT = 11,
  FA4SIM_SYNC_BRANCH = 12         /* some lanes take it; taken: mask of those; address: the instruction that they go to */
} fa4sim_sync_kind;
#define FA4SIM_SYNC_CONTINUED 1u    /* more of the execution that the warp's last record is of, by other lanes */
#define FA4SIM_SYNC_A_NOT_SHARED 2u /* A of the MMA is in tensor memory or registers */
#define FA4SIM_SYNC_REMOTE 4u       /* the mbarrier is another CTA's */
typedef struct fa4sim_sync {
  uint16_t kind, warp;  /* fa4sim_sync_kind; index in the CTA */
  uint32_t instruction; /* index into the entry's instructions, calls put in line */
  uint32_t line;        /* of the PTX text */
  uint32_t lanes;       /* mask */
  uint32_t together;    /* mask: these and the lanes that stand at the same instruction with them, their guard false */
  uint32_t address;     /* mbarriers: shared address */
  int32_t phase;        /* from 0, -1: none */
  union {
    uint32_t bytes;
    uint32_t taken; /* FA4SIM_SYNC_BRANCH */
  };
  uint16_t m, n;
  uint32_t flags; /* FA4SIM_SYNC_* */
} fa4sim_sync;
/* A file that FA4SIM_RECORD names has, for each launch, a line "fa4sim-record 2 CTA GRID_X GRID_Y GRID_Z THREADS RECORDS
 * PTX_BYTES KERNEL" in decimal, the PTX, and the CTA's records, one fa4sim_sync each. */
/* From the next launch on only these CTAs are executed, and what they do to synchronise is recorded; count 0: all are, and
 * nothing is recorded. A launch whose CTAs talk to each other is refused, and so is a list while the checker is on. */
FA4SIM_API int fa4sim_record(const uint64_t* ctas, uint64_t count);
/* Of a recorded CTA, once: with `records` null, how many there are; else writes up to `capacity`, forgets them all and
 * returns how many there were. */
FA4SIM_API uint64_t fa4sim_take_sync(uint64_t cta, fa4sim_sync* records, uint64_t capacity);

/* Thread instructions executed from a source file, found by the end of its name. */
FA4SIM_API uint64_t fa4sim_get_source_instructions(const char* file_suffix);

/* progress is called now and then during a launch, from one thread at a time, with the CTAs done and in all.
 * It must not call a function of this library but fa4sim_last_error. Null: none. */
FA4SIM_API void fa4sim_set_progress(void (*progress)(void* user, uint64_t done, uint64_t total), void* user);
/* The sentence of the last call that failed, on any thread; after a faulting kernel, its report. The pointer
 * is good until the calling thread asks again. */
FA4SIM_API const char* fa4sim_last_error(void);

/*
 * The happens-before checker. While it is on, every launch is watched. Findings gather over launches until
 * they are taken.
 */
typedef struct fa4sim_finding {
  uint32_t warning;    /* 1: ordered, but not by the documented chain (a tcgen05 fence is missing) */
  uint32_t reserved;
  uint64_t count;      /* how often this pair of instructions disagreed */
  uint64_t cta, cycle; /* of the first time */
  char kind[64];       /* "race", "missing proxy fence", ... */
  char memory[128];    /* "sKV slot 1 (0x14400)" */
  char first[320];     /* role, warp, lane and place of the earlier access */
  char second[320];    /* ... and of the later one */
  char last_sync[320]; /* what the second has seen of the first */
  char chain[320];     /* what the ISA asks for */
  char kernel[64];
} fa4sim_finding;

FA4SIM_API int fa4sim_check(int on);             /* from the next launch on */
FA4SIM_API uint64_t fa4sim_count_findings(void); /* gathered and not yet taken */
/* Returns how many it wrote. */
FA4SIM_API uint64_t fa4sim_take_findings(fa4sim_finding* findings, uint64_t capacity);
/* What the absence of findings rests on beside the PTX ISA, of all that was watched since fa4sim_check(1). */
#define FA4SIM_AXIOM_MMA_ORDER 1u /* the MMAs of one CTA execute in the order of their issue */
#define FA4SIM_AXIOM_LOAD_DELIVERY 2u /* a register of tcgen05.ld is delivered without wait::ld; FA4SIM_MODEL_SILICON */
#define FA4SIM_AXIOM_TENSOR_FENCES 4u /* tcgen05 fences order nothing that is not ordered without; FA4SIM_MODEL_SILICON */
#define FA4SIM_AXIOM_CLUSTER_SCOPE 8u /* an mbarrier arrival in another CTA, or its wait, that names no scope reaches the cluster */
FA4SIM_API uint32_t fa4sim_axioms(void);

/* What a kernel may rely on, from the next launch on. */
#define FA4SIM_MODEL_ISA 0u     /* the PTX ISA, the order of MMAs, the scope in clusters; the default */
#define FA4SIM_MODEL_SILICON 1u /* what today's hardware does beside: the other axioms, and deviations, which are warnings */
FA4SIM_API int fa4sim_set_model(uint32_t model);
/* Adversarial timing, from the next launch on: every delay and order that the model leaves open is drawn from the seed.
 * 0: nominal. */
#define FA4SIM_INDEPENDENT_LANES 1u /* lanes that diverged need not come together again before a bar.warp.sync: the ISA
                                       leaves that open, compilers do not */
FA4SIM_API int fa4sim_set_adversarial(uint64_t seed, uint32_t options);

#ifdef __cplusplus
}
#endif
#endif
