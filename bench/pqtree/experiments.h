// The experiments of the paper of pqtree, and what else decides whether to choose it. Each writes its tables
// (README.md), and says which data is missing.
#pragma once

#include <string>
#include <vector>

#include "../table.h"
#include "data.h"
#include "index.h"

namespace pgwarp::bench::pqtree
{

struct Plan {
    Output output;
    const Device& device;
    std::string folder;    // of files; empty: small generated data
    std::size_t rows = 0;  // of SIFT; 0: all
    std::size_t queries = 1000;
    std::vector<std::size_t> generated{};  // numbers of generated rows
    std::size_t rounds = 3;
    bool builds_alone = false;  // of generated rows, without searches

    bool quick() const { return folder.empty(); }
    bool on_gpu() const { return device.is_gpu(); }
    // Searches of a CPU have one thread, as the paper's.
    ThreadPool& searching(ThreadPool& pool) const { return on_gpu() ? pool : caller_alone(); }
    DataRequest request(const std::string& name, Metric metric, std::size_t most) const;
    // Null, and a line on it, where the files are not there.
    std::unique_ptr<DataSet> load(const std::string& name, Metric metric, std::size_t most, ThreadPool& pool) const;
};

// Table 3 and figure 7: errors of line codes, and recall by them alone.
void run_lines(const Plan& plan, ThreadPool& pool);
// Figure 3: orders of bins.
void run_order(const Plan& plan, ThreadPool& pool);
// Figure 6: the rows of the nearest bins, without ranking.
void run_proposals(const Plan& plan, ThreadPool& pool);
// Table 1: codes alone, and exact re-rank, beside the other methods.
void run_methods(const Plan& plan, ThreadPool& pool);
// Recall against time beside ivfadc and graph: along the efforts, and with the efforts of their calibrations.
void run_searches(const Plan& plan, ThreadPool& pool);
// The recall that a calibrated search attains.
void run_calibrated(const Plan& plan, ThreadPool& pool);
// Builds of generated rows, and searches at equal bytes a row: by codes alone, and with half vectors.
void run_builds(const Plan& plan, ThreadPool& pool);
void run_halves(const Plan& plan, ThreadPool& pool);

}  // namespace pgwarp::bench::pqtree
