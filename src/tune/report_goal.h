/* The objective in reports: report_goal.c. */
#ifndef AIT_SRC_TUNE_REPORT_GOAL_H
#define AIT_SRC_TUNE_REPORT_GOAL_H

#include "tune/report_page.h"

/* Tables of 80 columns: throughput by batch size, traffic, the front. Nothing in reports that know nothing of them. */
void ait_report_goal_text(ait_text *t, struct json_object *report);
const char *ait_report_unmet(struct json_object *report);    /* why nobody won though there are valid candidates; "" */
double ait_report_contest_batch(struct json_object *report); /* where finalists met; 0: at the samples' sizes */
void ait_page_goal(const ait_page *page);

#endif
