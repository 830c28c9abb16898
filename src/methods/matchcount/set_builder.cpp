// Builds of indexes of sets with signatures: they store the sets unchanged, sign them, and measure recall.
#include <algorithm>
#include <vector>

#include "methods/arrays.h"
#include "methods/bulk_memory.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/set_calibration.h"
#include "methods/options.h"
#include "methods/rows/owned_rows.h"
#include "methods/rows/stored_lists.h"
#include "numeric/sample.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::uint64_t sample_seed = 0x73657473;
constexpr std::uint64_t step_words = std::uint64_t{1} << 20;  // signed between two reports of progress
constexpr std::size_t most_step_rows = 4096;

// Merges sign new rows alone, and measure nothing.
enum class Measures { recall, nothing };

class SetBuilder : public Builder
{
public:
    SetBuilder(std::size_t functions, Measures measures) : hashes_(functions), measures_(measures) {}

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool& pool) override
    {
        rows_ = rows.rows();
        signatures_.resize(rows_.count * hashes_.signature_bytes());
        for_steps("encoding rows", progress, [&](std::size_t first, const RowView& some) {
            hashes_.sign(some, signature(first), pool, progress.cancel);
        });
        if (measures_ == Measures::recall && rows_.count > 1) calibrate(progress, pool);
    }
    std::vector<ArrayShape> arrays() const override
    {
        std::vector<ArrayShape> all = list_arrays(rows_);
        all.push_back(make_array_shape(array_signatures, ArrayType::u8, rows_.count, hashes_.signature_bytes()));
        return all;
    }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        if (array == array_signatures) return read_piece(std::span<const std::uint8_t>(signatures_), offset, out);
        if (!read_list_array(rows_, array, offset, out)) throw BadRequest("unknown array of sets");
    }
    Calibration calibration() const override { return calibration_.curve; }
    ParameterList effective_options() const override
    {
        ParameterList options;
        options.set(option_hashes, static_cast<std::int64_t>(hashes_.functions()));
        options.set(option_rehashed, set_digests);
        add_measured_options(calibration_, options);
        return options;
    }

private:
    std::uint8_t* signature(std::size_t row) { return signatures_.data() + row * hashes_.signature_bytes(); }

    // Calls body(first, rows) for all rows in steps.
    template <class Body>
    void for_steps(const char* phase, const BuildProgress& progress, const Body& body)
    {
        for (std::size_t first = 0; first < rows_.count;) {
            progress.advance(phase, first, rows_.count);
            const std::size_t last = std::min(first + most_step_rows, rows_.count);
            const std::uint64_t* const offsets = rows_.offsets;
            const auto end = std::lower_bound(offsets + first + 1, offsets + last, offsets[first] + step_words);
            const auto next = static_cast<std::size_t>(end - offsets);
            body(first, rows_.slice(first, next - first));
            first = next;
        }
    }
    void calibrate(const BuildProgress& progress, ThreadPool& pool)
    {
        const double words = static_cast<double>(rows_.word_count()) / static_cast<double>(rows_.count);
        const std::vector<std::uint32_t> sample =
            sample_rows(rows_.count, sample_within_words(most_sampled_queries, words), sample_seed);
        OwnedRows queries;
        std::vector<std::uint8_t> signatures;
        for (const std::uint32_t row : sample) {
            progress.check_cancel();
            queries.append(rows_.row(row));
            signatures.insert(signatures.end(), signature(row), signature(row) + hashes_.signature_bytes());
        }
        SetRecall recall(hashes_, sample, queries.view(), std::move(signatures));
        for_steps("calibrating", progress,
                  [&](std::size_t first, const RowView& some) { recall.add(some, signature(first), first, {}, pool); });
        calibration_ = recall.measured();
    }

    SetHashes hashes_;
    Measures measures_;
    RowView rows_;                         // in the memory of the rows
    BulkVector<std::uint8_t> signatures_;  // [rows][signature_bytes]
    SetCalibration calibration_{};
};

}  // namespace

std::size_t functions_of_sets(const IndexShape& shape, const ParameterList& options)
{
    require_options(matchcount_description, options, shape);
    if (static_cast<Metric>(shape.metric) != Metric::set_jaccard)
        throw BadRequest("signatures of sets tell of the Jaccard distance alone");
    return function_count(options);
}

std::unique_ptr<Builder> make_set_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<SetBuilder>(functions_of_sets(shape, options), Measures::recall);
}

std::unique_ptr<Builder> make_set_merge_builder(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<SetBuilder>(functions_of_sets(shape, options), Measures::nothing);
}

}  // namespace pgwarp::matchcount
