/* The parts of the report's HTML page: report_html.c calls them in order. */
#ifndef AIT_SRC_TUNE_REPORT_PAGE_H
#define AIT_SRC_TUNE_REPORT_PAGE_H

#include "tune/html.h"

typedef struct ait_page {
  ait_text *t;
  struct json_object *report;
  struct json_object *after,
      *before; /* profiles of winner and baseline; NULL: none, or without steps. before NULL where the baseline won */
} ait_page;

/* report_charts.c: inline SVG. Text that must be read on a phone stands in HTML beside it. */
void ait_page_latency(const ait_page *p);
void ait_page_roofline(const ait_page *p);
void ait_page_memory(const ait_page *p);
/* report_tables.c */
void ait_page_modules(const ait_page *p);
void ait_page_steps(const ait_page *p);
void ait_page_candidates(const ait_page *p);
void ait_page_accuracy(const ait_page *p);
/* report_shapes.c */
void ait_page_shapes(const ait_page *p);

/* Time of the profile's steps inside the module; "" is all of it. */
double ait_page_seconds(struct json_object *profile, const char *module);
/* The speed that the roofline allows at this intensity, FLOP/s; 0: not known. */
double ait_page_roof(struct json_object *roofline, double flops_per_byte);

#endif
