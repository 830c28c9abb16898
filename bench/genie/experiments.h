// The experiments of GENIE's paper. Each writes its tables (README.md), and says which data is
// missing.
#pragma once

#include <string>
#include <vector>

#include "../table.h"
#include "counter.h"
#include "sources.h"

namespace pgwarp::bench::genie
{

struct Plan {
    Sources sources{""};
    Output output;
    std::vector<std::string> data;  // the data sets of experiments on counts
    std::size_t repeat = 3;
    std::size_t checked = 2;  // queries of a batch that are compared with a brute force
    std::size_t rows = 0;     // of vectors, at most; 0: all
    std::size_t copies = 0;   // of the rows of Adult, for figure 11; 0: as many as make 100M rows
};

// Tables 1, figures 6 and 13 (by the number of queries), 7 (by the number of rows), 8 (memory).
void run_counts(const Plan& plan, std::span<const std::unique_ptr<Counter>> counters, ThreadPool& pool);
// Figure 11: long lists, with and without balance.
void run_balance(const Plan& plan, std::span<const std::unique_ptr<Counter>> counters, ThreadPool& pool);
// Figure 5: the number of functions by the similarity.
void run_functions(const Plan& plan);
// Figure 9 and recall by the number of candidates; table 2.
void run_ratio(const Plan& plan, ThreadPool& pool);
void run_kernel(const Plan& plan, ThreadPool& pool);
// The approximation ratio, recall and speed beside the other methods for vectors.
void run_peers(const Plan& plan, ThreadPool& pool);
// Table 3: one round for titles with edits, and the certified search.
void run_edits(const Plan& plan, ThreadPool& pool);

}  // namespace pgwarp::bench::genie
