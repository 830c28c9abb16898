// Many searches at once: lateral joins, knn_search, many clients, many partitions, the k-NN graph.
#pragma once

#include "options.h"

namespace pgwarp::bench
{

// Measure the parts that options.batch_parts names, print a table and append to options.csv_file.
void measure_batches(const Options& options, Dataset data);

}  // namespace pgwarp::bench
