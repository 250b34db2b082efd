/* ait: run, inspect and tune models. libait-rt has everything but tune.h, tools.h and ait_model_import. */
#ifndef AIT_H
#define AIT_H

#include <ait/backend.h>
#include <ait/base.h>
#include <ait/custom_op.h>
#include <ait/data.h>
#include <ait/deploy.h>
#include <ait/embed.h>
#include <ait/keys.h>
#include <ait/llm.h>
#include <ait/model.h>
#include <ait/session.h>
#include <ait/tensor.h>
#include <ait/text.h>
#include <ait/tools.h>
#include <ait/tune.h>

#endif
