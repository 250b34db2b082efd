/* Backends that run in Python (python/ait/_guests.py): torch and its relatives, and those of users.
 *
 * In a trial, which is a forked process and may not use the interpreter that it inherited, a guest runs in a fresh interpreter beside it
 * (guest_worker.c). In the process that registered it, which is where plans are used, it runs in place (guest.c). Thread rule: as the
 * functions of ait_backend. */
#ifndef AIT_PYTHON_GUEST_H
#define AIT_PYTHON_GUEST_H

#include "core.h"
#include <ait/backend.h>

enum { GUEST_ROWS = 24, GUEST_VALUES = 4096 };

/* One backend: a row of the table. Texts live as long as the process. */
typedef struct guest_row {
  ait_backend table;
  const char *spec;    /* JSON for the worker: which class, from which module */
  const char *version; /* NULL: not here */
  const char *reason;
} guest_row;

/* What compile() makes: this header; for each input of the region its place among the user's inputs, or -1 (int32); the names of the
 * weights that load needs (each ended by NUL); the payload that Python made. */
typedef struct guest_header {
  char magic[8];
  uint32_t version, weight_count, input_count, output_count;
  uint64_t names_size, payload_size;
} guest_header;

typedef struct guest_loaded {
  ait_allocator allocator;
  const guest_row *row;
  const char *payload; /* in the blob */
  size_t payload_size;
  uint32_t weight_count, input_count, output_count, user_count;
  const int32_t *places; /* in the blob, input_count */
  const char **names;    /* in the blob */
  ait_tensor *weights;
  char *options;  /* "key=value,key=value" */
  PyObject *here; /* in place: the callable; NULL before the first run */
} guest_loaded;

/* ---- guest_worker.c: a guest in another process
 * ------------------------------------------------------------------------------------------*/
typedef struct guest_worker guest_worker;
/* The command that starts an interpreter with the worker's main; NULL-terminated, taken over. */
void guest_worker_command(char **argv);
/* Compiles: *out is the payload, malloc'ed. names: names_size bytes, count texts. *out_weights: load will need the weights. */
ait_status guest_worker_compile(const guest_row *row, const char *options, const char *program, const char *names, size_t names_size,
                                void **out, size_t *out_size, bool *out_weights) AIT_MUST_USE;
/* Starts one that serves runs of `loaded` on that many threads. */
ait_status guest_worker_start(const guest_loaded *loaded, int32_t threads, guest_worker **out) AIT_MUST_USE;
void guest_worker_stop(guest_worker *worker); /* takes NULL */
/* One run. Tensors of inputs are contiguous; outputs become views of memory that is valid until the worker's next run, and what is no
 * tensor a value. *out_transport: seconds beyond what the call took in the worker, from tensors to tensors. */
ait_status guest_worker_run(guest_worker *worker, const ait_value *inputs, uint32_t input_count, ait_value *outputs, uint32_t output_count,
                            double *out_transport) AIT_MUST_USE;

/* ---- guest.c
 * ---------------------------------------------------------------------------------------------------------------------------*/
int core_add_guests(PyObject *module);

#endif
