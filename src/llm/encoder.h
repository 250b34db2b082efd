/* The second graph of a deployed file: what an encoder makes of one request's input, keys and values for each layer that reads them. */
#ifndef AIT_SRC_LLM_ENCODER_H
#define AIT_SRC_LLM_ENCODER_H

#include "base/json.h"
#include "llm/step.h"
#include <ait/session.h>

typedef struct lm_encoder lm_encoder;
/* Reads "source" and "generation" of llm.json into info, and the second graph of the file that the model came from. *out NULL: there is
 * none. Errors: invalid-model. */
ait_status lm_encoder_open(ait_allocator a, ait_arena *arena, ait_model *model, const ait_json *root, ait_lm_info *info,
                           lm_encoder **out) AIT_MUST_USE;
void lm_encoder_destroy(lm_encoder *encoder); /* takes NULL */
ait_model *lm_encoder_model(const lm_encoder *encoder);
/* Shape, dtype and ids of a request's input. Errors: invalid-argument, limit. */
ait_status lm_check_source(const ait_lm_info *info, const ait_tensor *source) AIT_MUST_USE;
/* One run. outputs: one for each output of the model, views of the session's memory. */
ait_status lm_encoder_run(const lm_encoder *encoder, ait_session *session, const ait_tensor *source, ait_value *outputs) AIT_MUST_USE;

#endif
