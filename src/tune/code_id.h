/* Code that is not ait's own: what a plugin did in a trial says nothing about another build of it. */
#ifndef AIT_SRC_TUNE_CODE_ID_H
#define AIT_SRC_TUNE_CODE_ID_H

#include "base/base.h"

/* Of the file that holds the function, by its contents; 0 when that is this library (or the program it is linked into), which ait_build_id
 * speaks for, or when there is no such file. */
uint64_t ait_code_id(void (*function)(void));
/* Of the custom operators that a printed graph names. */
uint64_t ait_code_id_of_operators(const char *graph_text);

#endif
