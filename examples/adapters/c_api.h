/* SPDX-License-Identifier: Apache-2.0
 * C entry points of a host tier, for engines in other languages: SGLang's host pool
 * (sglang_host_pool.py) and LMCache's serde (lmcache_serde.py) load them with ctypes.
 *
 * All memory is the caller's. "Device" memory is memory that this processor can read and write:
 * plain, pinned or unified. Functions return 0, or a size, and -1 after an error, which
 * kvarts_last_error explains; then nothing was written. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvarts_tier kvarts_tier;

typedef struct kvarts_tier_options {
  char const* preset; /* fp16, bf16, int8, k8v8, k4v4, k4v3, k4v2, k3v3, k3v2, k2v2 */
  char const* model;  /* weights and revision, for the digest of page files; may be null */
  int32_t layers;
  int32_t heads; /* KV heads of this rank */
  int32_t head_dim;
  int32_t page_tokens;
  int32_t alignment; /* bytes of records: a power of 2 */
  int32_t layout;    /* 0 layer_first, 1 page_first, 2 page_first_direct, 3 page_head */
  int32_t source;    /* elements of the engine: 0 fp16, 1 bf16, 2 fp32 */
  int32_t threads;
  float const* center; /* [layers, heads, head_dim] of the keys, where the preset is calibrated */
  float const* norm;
} kvarts_tier_options;

/* Host memory of a tier: kvarts_host_bytes of K and of V for `tokens` tokens, whole pages. */
typedef struct kvarts_host_pool {
  void* keys;
  void* values;
  int64_t tokens;
} kvarts_host_pool;

/* The last error of this thread; valid until the next call. */
char const* kvarts_last_error(void);

/* Null after an error. The options are copied. */
kvarts_tier* kvarts_tier_create(kvarts_tier_options const* options);
void kvarts_tier_destroy(kvarts_tier* tier);

/* Bytes of K (side 0) or V (side 1) of so many tokens. */
int64_t kvarts_host_bytes(kvarts_tier const* tier, int32_t side, int64_t tokens);

/* Bytes of a token in the host pool, K and V of all layers. */
int64_t kvarts_get_size_per_token(kvarts_tier const* tier);

/* Encodes tokens device_indices[i] of all layers into tokens host_indices[i]. k_layers and v_layers
 * are tables of addresses, one a layer, of `[device_tokens, heads, head_dim]`. */
int32_t kvarts_backup_from_device_all_layer(kvarts_tier const* tier, kvarts_host_pool const* host,
                                            uint64_t const* k_layers, uint64_t const* v_layers,
                                            int64_t device_tokens, int64_t const* host_indices,
                                            int64_t const* device_indices, int64_t count);

/* Decodes tokens host_indices[i] of one layer into tokens device_indices[i] of `k` and `v`. */
int32_t kvarts_load_to_device_per_layer(kvarts_tier const* tier, kvarts_host_pool const* host,
                                        int32_t layer, void* k, void* v, int64_t device_tokens,
                                        int64_t const* host_indices, int64_t const* device_indices,
                                        int64_t count);

/* Exact bytes of a serialized chunk of so many tokens: a page file of K, then one of V. */
int64_t kvarts_estimate_serialized_size(kvarts_tier const* tier, int64_t tokens);

/* Serializes a chunk `[2, layers, tokens, heads, head_dim]`, K before V; `key` names its tokens and
 * all before them. Returns the bytes written. */
int64_t kvarts_serialize(kvarts_tier const* tier, void const* chunk, int64_t tokens, void* to,
                         int64_t to_bytes, uint8_t const key[32]);

/* The way back. A chunk that is cut, damaged, of another tier or of another key is refused. `from`
 * may be longer than the serialized bytes. */
int32_t kvarts_deserialize(kvarts_tier const* tier, void const* from, int64_t from_bytes,
                           void* chunk, int64_t tokens, uint8_t const key[32]);

#ifdef __cplusplus
}
#endif
