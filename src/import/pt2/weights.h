/* The tensors of a .pt2: raw storage files with a config (torch 2.9 and later), or pickles of torch.save (before, and for tensor
 * subclasses). Looked up by fully qualified name, checked, and put into a weight store. */
#ifndef AIT_SRC_IMPORT_PT2_WEIGHTS_H
#define AIT_SRC_IMPORT_PT2_WEIGHTS_H

#include "base/json.h"
#include "import/pt2/pickle.h"
#include "import/pt2/zip.h"
#include "tensor/tensor.h"

/* One torch.save archive: its pickle, and the files that hold its storages. */
typedef struct ait_pt2_pickled {
  const char *name; /* of the member that it is, for messages */
  ait_zip zip;
  const char *root; /* "archive/" */
  const ait_pickle *value;
} ait_pt2_pickled;

typedef struct ait_pt2_tensor {
  const char *name; /* fully qualified; set by whoever keeps a subclass */
  bool is_subclass; /* then only logical dtype and shape hold, and the parts are found by attribute name */
  ait_dtype dtype;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK], strides[AIT_MAX_RANK], offset; /* in elements */
  const ait_zip_member *file;                                 /* the whole storage */
  const ait_pickle *parts;                                    /* dict */
  const ait_pt2_pickled *pickled;
} ait_pt2_tensor;

typedef struct ait_pt2_weights {
  ait_arena *arena;      /* of the import; ends with it */
  ait_file_map *mapping; /* of the .pt2 */
  const ait_zip *zip;
  uint64_t *budget; /* of inflating */
  ait_weight_store *store;
  ait_map entries[2];              /* weights, constants: name to config entry (ait_json) or pickled value (ait_pickle) */
  ait_map storages;                /* member name and archive to index + 1 in the store */
  ait_map archives;                /* member name to ait_pt2_pickled */
  const ait_pt2_pickled *whole[2]; /* weights, constants as one pickle each; or NULL */
  const char *folder[2];           /* of the raw files: "m/data/weights/" */
} ait_pt2_weights;

typedef enum ait_pt2_table { AIT_PT2_WEIGHTS, AIT_PT2_CONSTANTS } ait_pt2_table;

/* serde's ScalarType to ours; AIT_DTYPE_NONE for 0 and unknown numbers. */
ait_dtype ait_pt2_dtype(int64_t code);

/* Creates the store. deinit releases it (retain what is to stay). */
ait_status ait_pt2_weights_init(ait_pt2_weights *w, ait_arena *arena, ait_file_map *mapping, const ait_zip *zip,
                                uint64_t *budget) AIT_MUST_USE;
void ait_pt2_weights_deinit(ait_pt2_weights *w);
/* Tables are given once each: a config (JSON object) with the folder of its files, or a member that is a torch.save of a dict. */
ait_status ait_pt2_weights_set_config(ait_pt2_weights *w, ait_pt2_table table, const ait_json *config, const char *folder) AIT_MUST_USE;
ait_status ait_pt2_weights_set_pickle(ait_pt2_weights *w, ait_pt2_table table, const ait_zip_member *member) AIT_MUST_USE;

/* Looks in `first`, then in the other table. Errors: invalid-model (missing, or its description is wrong). */
ait_status ait_pt2_weights_find(ait_pt2_weights *w, ait_pt2_table first, const char *name, ait_pt2_tensor *out) AIT_MUST_USE;
/* A part of a subclass. */
ait_status ait_pt2_weights_part(ait_pt2_weights *w, const ait_pt2_tensor *whole, const char *attribute, ait_pt2_tensor *out) AIT_MUST_USE;
/* Puts a plain tensor into the store under `name`, unless that name is there already. */
ait_status ait_pt2_weights_add(ait_pt2_weights *w, const char *name, const ait_pt2_tensor *tensor) AIT_MUST_USE;

#endif
