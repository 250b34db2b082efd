/* Reading the library's JSON documents. Missing members read as "", 0, false, NULL. */
#ifndef AIT_SRC_CLI_JSON_VIEW_H
#define AIT_SRC_CLI_JSON_VIEW_H

#include "cli/cli.h"

const char *cli_member(struct json_object *o, const char *key);
double cli_member_number(struct json_object *o, const char *key);
bool cli_member_true(struct json_object *o, const char *key);
struct json_object *cli_member_object(struct json_object *o, const char *key);
size_t cli_member_count(struct json_object *o, const char *key); /* elements of the list; 0 when it is none */
struct json_object *cli_member_at(struct json_object *o, const char *key, size_t i);
/* Parses the document and frees the text, or prints the error. NULL: *out_code says how to end. */
struct json_object *cli_document(ait_status status, char *text, int *out_code);

/* cmd_tune.c: the tuning report of the plan that runs, else of the best one in the file; put by the caller. NULL: there is none. */
struct json_object *cli_model_report(const ait_model *model);

/* cmd_deploy.c: precision, proof and perplexity of a language model, as rows; what is not there is left out. */
void cli_print_deploy(struct json_object *evidence);

#endif
