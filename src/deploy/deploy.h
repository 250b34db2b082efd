/* Front door of the deploy room: the public function is ait_deploy (ait/deploy.h). */
#ifndef AIT_SRC_DEPLOY_H
#define AIT_SRC_DEPLOY_H

#include "ir/ir.h"
#include "llm/step.h"
#include <ait/deploy.h>

/* What is known of a model beside its graph. */
typedef struct dep_source {
  ait_arena arena;
  const char *folder;     /* NULL: a file */
  const char *graph;      /* path of the .pt2 */
  const char *checkpoint; /* folder or file of safetensors; NULL: the graph holds its weights */
  const char *extra;      /* safetensors of weights that the checkpoint does not hold as they are; NULL */
  struct dep_rename {
    const char *from, *to; /* the graph's name, the checkpoint's name */
  } * renames;
  uint32_t rename_count;
  int64_t max_positions; /* 0: not known */
  int64_t max_source;    /* of an encoder's input; 0: not known */
  int64_t bos, pad, stops[AIT_LM_MAX_STOPS];
  uint32_t stop_count;
  struct dep_file {
    const char *name, *text;
    size_t size;
  } files[8]; /* go into the artifact as they are */
  uint32_t file_count;
  const struct ait_json *description; /* ait.json; NULL: there is none */
  const char *task;                   /* "lm", "embed", "seq2seq" */
} dep_source;
typedef struct dep_file dep_file;

#endif
