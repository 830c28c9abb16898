// The steps of a build of pqtree, as the CPU makes them, for a device to override.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/pqtree/build_arrays.h"
#include "methods/pqtree/proposer.h"
#include "methods/vector_build.h"

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

using TreeBuildInput = VectorBuildInput;

// Called in this order between begin() and train_half(); make_proposer() after the truth.
class TreeBuildSteps : public VectorBuildSteps<TreeArrays>
{
public:
    // Makes the tree.
    virtual void train_tree(const TreeBuildInput& input, TreeArrays& arrays);
    // Makes the table of lines, on the CPU, from so many rows.
    void choose_lines(const TreeBuildInput& input, TreeArrays& arrays);
    virtual std::size_t line_rows() const { return line_sample_rows; }
    // Makes the codes of all rows: leaves, lines and places.
    virtual void encode_rows(const TreeBuildInput& input, TreeArrays& arrays);
    // Makes the proposer of the calibration.
    virtual std::unique_ptr<TreeProposer> make_proposer(const TreeBuildInput& input, const TreeArrays& arrays);
};

// device: the steps of a device, or null. Where its memory is too small, the CPU makes all steps.
std::unique_ptr<Builder> make_pqtree_builder(const IndexShape& shape, const ParameterList& options,
                                             std::unique_ptr<TreeBuildSteps> device);

}  // namespace pgwarp
