/* Random numbers. Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). What is promised is shape, dtype
 * and distribution, not PyTorch's own stream. */
#include "backends/reference/nn.h"

static void philox(const uint32_t key_in[2], const uint32_t counter[4], uint32_t out[4]) {
  uint32_t k0 = key_in[0], k1 = key_in[1], c[4];
  memcpy(c, counter, sizeof c);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
    c[1] = (uint32_t)p1;
    c[3] = (uint32_t)p0;
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  memcpy(out, c, sizeof c);
}

void ait_nn_random_init(ait_ref_call *call, ait_nn_random *r) {
  memset(r, 0, sizeof *r);
  uint64_t key = ait_hash(call->node->name, strlen(call->node->name), 0x5eed);
  r->key[0] = (uint32_t)key;
  r->key[1] = (uint32_t)(key >> 32);
  r->used = 4;
}

uint32_t ait_nn_random_u32(ait_nn_random *r) {
  if (r->used == 4) {
    philox(r->key, r->counter, r->block);
    if (++r->counter[0] == 0) ++r->counter[1];
    r->used = 0;
  }
  return r->block[r->used++];
}

double ait_nn_random_uniform(ait_nn_random *r) {
  uint64_t high = ait_nn_random_u32(r), low = ait_nn_random_u32(r);
  return (double)((high << 21) ^ (low >> 11)) * 0x1p-53;
}

/* Box and Muller */
double ait_nn_random_normal(ait_nn_random *r) {
  double u = 1 - ait_nn_random_uniform(r), v = ait_nn_random_uniform(r);
  return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}
