/* curves.h - the series of a panel, and their samples in the legend. */
#ifndef PLOT_CURVES_H
#define PLOT_CURVES_H

#include "layout.h"

void curves_draw(struct canvas *canvas, const struct panel *panel, const struct box *box);
void curves_draw_sample(struct canvas *canvas, const struct series *series, struct point at);

#endif
