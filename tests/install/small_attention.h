/* SPDX-License-Identifier: Apache-2.0 */
/* One small attention problem for programs that use the installed package: inputs, and a comparison with
 * double precision. Q and O are dense (batch, sequence, head, head dimension), K and V likewise; the LSE
 * (batch, head, sequence). C99 and C++. */
#ifndef SMALL_ATTENTION_H
#define SMALL_ATTENTION_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum { BATCH = 2, SEQ_Q = 5, SEQ_KV = 135, Q_HEADS = 4, KV_HEADS = 2, HEAD_DIM = 128 };
enum { Q_ELEMENTS = BATCH * SEQ_Q * Q_HEADS * HEAD_DIM, KV_ELEMENTS = BATCH * SEQ_KV * KV_HEADS * HEAD_DIM };
enum { LSE_ELEMENTS = BATCH * Q_HEADS * SEQ_Q };

static uint16_t q_host[Q_ELEMENTS], k_host[KV_ELEMENTS], v_host[KV_ELEMENTS], o_host[Q_ELEMENTS];
static float lse_host[LSE_ELEMENTS];

/* IEEE half precision; finite and normal or zero, which is all that occurs here. */
static uint16_t half_bits(double value) {
  int exponent;
  double fraction = frexp(fabs(value), &exponent); /* [0.5, 1) */
  if (value == 0) return 0;
  return (uint16_t)((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | ((int)ldexp(fraction, 11) & 0x3ff));
}

static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31;
  double magnitude = exponent != 0 ? ldexp(1024 + (bits & 0x3ff), exponent - 25) : ldexp(bits & 0x3ff, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/* Multiples of 1/16 from -2 to 2, exact in half precision. */
static void fill(uint16_t* elements, int count, uint32_t seed) {
  uint32_t state = seed;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    elements[i] = half_bits(((int)(state >> 16) % 65 - 32) / 16.0);
  }
}

static void fill_inputs(void) {
  fill(q_host, Q_ELEMENTS, 1);
  fill(k_host, KV_ELEMENTS, 2);
  fill(v_host, KV_ELEMENTS, 3);
}

/* The larger of two errors; a NaN is the largest of all and stays (fmax would drop it). */
static double worse(double worst, double error) {
  return isnan(worst) || error <= worst ? worst : error;
}

/* Compares o_host and lse_host with the causal (bottom-right) result in double precision. 0 when they agree.
 */
static int compare(void) {
  double worst_o = 0, worst_lse = 0;
  for (int b = 0; b < BATCH; ++b) {
    for (int h = 0; h < Q_HEADS; ++h) {
      for (int i = 0; i < SEQ_Q; ++i) {
        const uint16_t* q = q_host + ((b * SEQ_Q + i) * Q_HEADS + h) * HEAD_DIM;
        const int kv_head = h / (Q_HEADS / KV_HEADS), keys = i + 1 + SEQ_KV - SEQ_Q;
        double score[SEQ_KV], most = -INFINITY, sum = 0, out[HEAD_DIM] = {0};
        for (int j = 0; j < keys; ++j) {
          const uint16_t* k = k_host + ((b * SEQ_KV + j) * KV_HEADS + kv_head) * HEAD_DIM;
          score[j] = 0;
          for (int d = 0; d < HEAD_DIM; ++d) score[j] += half_value(q[d]) * half_value(k[d]);
          score[j] /= sqrt((double)HEAD_DIM);
          if (score[j] > most) most = score[j];
        }
        for (int j = 0; j < keys; ++j) {
          const uint16_t* v = v_host + ((b * SEQ_KV + j) * KV_HEADS + kv_head) * HEAD_DIM;
          const double weight = exp(score[j] - most);
          sum += weight;
          for (int d = 0; d < HEAD_DIM; ++d) out[d] += weight * half_value(v[d]);
        }
        for (int d = 0; d < HEAD_DIM; ++d) {
          const double o = half_value(o_host[((b * SEQ_Q + i) * Q_HEADS + h) * HEAD_DIM + d]);
          worst_o = worse(worst_o, fabs(o - out[d] / sum));
        }
        worst_lse = worse(worst_lse, fabs(lse_host[(b * Q_HEADS + h) * SEQ_Q + i] - (most + log(sum))));
      }
    }
  }
  printf("max error: O %.3g, LSE %.3g\n", worst_o, worst_lse);
  return !(worst_o < 3e-3 && worst_lse < 1e-4); /* a NaN is no agreement */
}

#endif
