// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"

uint64_t histogram_quantile_since(const struct histogram *from, const struct histogram *since, double share)
{
	uint64_t total = 0, below = 0;
	unsigned bar;

	for (bar = 0; bar < HISTOGRAM_BARS; bar++)
		total += from->bars[bar] - since->bars[bar];
	for (bar = 0; bar < HISTOGRAM_BARS && total > 0; bar++) {
		below += from->bars[bar] - since->bars[bar];
		if (below > 0 && (double)below >= share * (double)total)
			return histogram_low(bar);
	}
	return 0;
}
