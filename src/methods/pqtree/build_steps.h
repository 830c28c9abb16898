// The steps of a build of pqtree, as the CPU makes them, for a device to override.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/pqtree/build_arrays.h"
#include "methods/pqtree/proposer.h"

namespace pgwarp
{

inline constexpr std::uint64_t tree_seed = 0x70677074;
// The sample that trains a tree has these numbers of rows for each leaf, or for each centroid of the first level where
// that makes more.
inline constexpr std::size_t rows_per_leaf = 40;
inline constexpr std::size_t rows_per_centroid = 128;
inline constexpr std::size_t encode_step = 8192;  // rows that are encoded at a time

// Returns the number of rows that train a tree.
std::size_t tree_training_sample(const TreeShape& shape);

// Writes the codes [rows][options.code_bytes()] of rows by the tree and the lines of `arrays`. Throws Cancelled.
void encode_rows(const TreeArrays& arrays, std::span<const float> rows, std::uint8_t* codes, ThreadPool& pool,
                 const CancelToken* cancel);

// The input of every step.
struct TreeBuildInput {
    const IndexShape& shape;
    RowBuffer& rows;
    const BuildProgress& progress;
    ThreadPool& pool;

    Metric metric() const { return static_cast<Metric>(shape.metric); }
    std::span<const float> vectors() const { return rows.vectors(); }
    // Reports progress; throws Cancelled where the build was cancelled.
    void report(const char* phase, std::uint64_t done, std::uint64_t total) const
    {
        progress.advance(phase, done, total);
    }
};

// Called in this order, each at most once; the options decide which. A device throws std::bad_alloc where its memory is
// short.
class TreeBuildSteps
{
public:
    virtual ~TreeBuildSteps() = default;
    // Brings rows to a device.
    virtual void begin(const TreeBuildInput&) {}
    // Makes the tree.
    virtual void train_tree(const TreeBuildInput& input, TreeArrays& arrays);
    // Makes the table of lines.
    virtual void choose_lines(const TreeBuildInput& input, TreeArrays& arrays);
    // Makes the codes of all rows: leaves, lines and places.
    virtual void encode_rows(const TreeBuildInput& input, TreeArrays& arrays);
    // Makes the codec of half vectors and their largest error.
    virtual void train_half(const TreeBuildInput& input, TreeArrays& arrays);
    // As calibration_truth() (methods/recall/truth.h).
    virtual std::vector<std::vector<std::uint32_t>> truth(const TreeBuildInput& input,
                                                          const std::vector<std::uint32_t>& sample);
    // Makes the proposer of the calibration.
    virtual std::unique_ptr<TreeProposer> make_proposer(const TreeBuildInput& input, const TreeArrays& arrays);
    // Makes the half vectors in the memory of the rows, whose floats are gone afterwards.
    virtual void keep_halves(const TreeBuildInput& input, TreeArrays& arrays);
};

// device: the steps of a device, or null. Where its memory is too small, the CPU makes all steps.
std::unique_ptr<Builder> make_pqtree_builder(const IndexShape& shape, const ParameterList& options,
                                             std::unique_ptr<TreeBuildSteps> device);

}  // namespace pgwarp
