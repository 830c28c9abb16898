// Measures the recall of an index of sets by its signatures and its stored sets, which are streamed once.
#include <algorithm>
#include <cstring>
#include <optional>

#include "methods/bulk_memory.h"
#include "methods/matchcount/calibration_arrays.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/set_calibration.h"
#include "methods/rows/owned_rows.h"
#include "protocol/calibration.h"

namespace pgwarp::matchcount
{

namespace
{

constexpr std::size_t calibration_step_rows = 4096;
constexpr std::uint64_t most_rows = std::uint64_t{1} << 32;

// Whether offsets are those of lists that have `words` words together.
bool are_offsets(std::span<const std::uint64_t> offsets, std::uint64_t words)
{
    return !offsets.empty() && offsets.front() == 0 && offsets.back() == words && std::ranges::is_sorted(offsets);
}

class SetCalibrator : public Builder
{
public:
    SetCalibrator(const IndexShape& shape, std::size_t functions) : shape_(shape), hashes_(functions) {}

    void give(const ArrayShape& array, std::uint64_t offset, std::span<const std::byte> bytes) override;
    void run(RowBuffer& none, const BuildProgress&, ThreadPool&) override
    {
        if (none.size() > 0) throw BadRequest("a calibration takes its rows as arrays");
        if (!recall_) begin_rows(0);
        compare_whole_rows();
        if (first_ != rows_ || !begun_.empty()) throw BadRequest("the sets were not given whole");
        calibration_ = recall_->measured();
    }
    std::vector<ArrayShape> arrays() const override { return {}; }
    void read(const std::string&, std::uint64_t, std::span<std::byte>) const override
    {
        throw BadRequest("a calibration makes no arrays");
    }
    Calibration calibration() const override { return calibration_.curve; }
    ParameterList effective_options() const override
    {
        ParameterList measured;
        add_measured_options(calibration_, measured);
        return measured;
    }

private:
    void give_small(const ArrayShape& array, std::uint64_t offset, std::span<const std::byte> bytes);
    void begin_rows(std::uint64_t words);
    OwnedRows sampled_queries(std::vector<std::uint32_t>& own) const;
    void compare_whole_rows();

    IndexShape shape_;
    SetHashes hashes_;
    BulkVector<std::uint8_t> signatures_;  // [rows][functions]
    BulkVector<std::uint64_t> offsets_;    // [rows + 1]
    std::vector<std::uint64_t> dead_;      // bitmap
    std::vector<std::uint32_t> sample_;    // rows that are queries
    std::vector<std::uint64_t> query_offsets_;
    std::vector<std::uint32_t> query_words_;
    std::optional<SetRecall> recall_;
    std::size_t rows_ = 0;
    std::size_t first_ = 0;         // the first row that has not been compared
    std::uint64_t next_ = 0;        // the next byte of the words
    std::vector<std::byte> begun_;  // the words from that row on
    SetCalibration calibration_{};
};

void SetCalibrator::give(const ArrayShape& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (std::string_view(array.name) != array_list_words) {
        if (recall_) throw BadRequest("an array after the sets");
        return give_small(array, offset, bytes);
    }
    require_array(std::span(&array, 1), array_list_words, ArrayType::u32, array.rows, 1);
    if (!recall_) begin_rows(array.rows);
    if (offset != next_ || bytes.size() > array.bytes() - offset) throw BadRequest("sets out of order");
    next_ += bytes.size();
    begun_.insert(begun_.end(), bytes.begin(), bytes.end());
    compare_whole_rows();
}

void SetCalibrator::give_small(const ArrayShape& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    constexpr std::uint64_t most_queries = most_calibration_queries;
    const std::string_view name = array.name;
    if (name == array_signatures) {
        require_array(std::span(&array, 1), array_signatures, ArrayType::u8, array.rows, hashes_.signature_bytes());
        take_piece(signatures_, array, most_rows * hashes_.signature_bytes(), offset, bytes);
    } else if (name == array_list_offsets) {
        take_piece(offsets_, array, (most_rows + 1) * sizeof(std::uint64_t), offset, bytes);
    } else if (name == array_calib_dead) {
        take_piece(dead_, array, most_bitmap_bytes, offset, bytes);
    } else if (name == array_calib_row) {
        take_piece(sample_, array, most_queries * sizeof(std::uint32_t), offset, bytes);
    } else if (name == array_calib_offset) {
        take_piece(query_offsets_, array, (most_queries + 1) * sizeof(std::uint64_t), offset, bytes);
    } else if (name == array_calib_query) {
        take_piece(query_words_, array, most_queries * max_list_words * sizeof(std::uint32_t), offset, bytes);
    } else {
        throw BadRequest("an array that a calibration has no use for");
    }
}

// Checks the arrays of the sets, whose lists have `words` words together.
void SetCalibrator::begin_rows(std::uint64_t words)
{
    if (!are_offsets(offsets_, words)) throw BadRequest("offsets of other sets");
    rows_ = offsets_.size() - 1;
    if (signatures_.size() != rows_ * hashes_.signature_bytes()) throw BadRequest("signatures of other sets");
    if (!dead_.empty() && dead_.size() != (rows_ + 63) / 64) throw BadRequest("tombstones of another number of rows");
    if (sample_.empty() || query_offsets_.size() != sample_.size() + 1 ||
        !are_offsets(query_offsets_, query_words_.size()))
        throw BadRequest("a sample without its rows");
    std::vector<std::uint32_t> own;
    const OwnedRows queries = sampled_queries(own);
    if (lists_fault(queries.view(), shape_) != nullptr) throw BadRequest("a sample that holds no sets");
    std::vector<std::uint8_t> signatures;
    for (const std::uint32_t row : own) {
        if (row >= rows_) throw BadRequest("a sample of rows that the index does not have");
        const auto signature = signatures_.begin() + static_cast<std::ptrdiff_t>(row * hashes_.signature_bytes());
        signatures.insert(signatures.end(), signature,
                          signature + static_cast<std::ptrdiff_t>(hashes_.signature_bytes()));
    }
    recall_.emplace(hashes_, std::move(own), queries.view(), std::move(signatures));
}

// Takes an even part of the sample: the rows' numbers and the rows.
OwnedRows SetCalibrator::sampled_queries(std::vector<std::uint32_t>& own) const
{
    RowView sample;
    sample.count = sample_.size();
    sample.offsets = query_offsets_.data();
    sample.words = query_words_.data();
    OwnedRows queries;
    const double words = static_cast<double>(query_words_.size()) / static_cast<double>(sample_.size());
    const std::size_t wanted = sample_within_words(std::min(sample_.size(), most_sampled_queries), words);
    for (std::size_t i = 0; i < wanted; ++i) {
        const std::size_t from = i * sample_.size() / wanted;
        own.push_back(sample_[from]);
        queries.append(sample.row(from));
    }
    return queries;
}

// Compares the sets that have come whole.
void SetCalibrator::compare_whole_rows()
{
    const std::uint64_t begin = offsets_[first_];
    const std::uint64_t have = begin + begun_.size() / sizeof(std::uint32_t);
    const auto behind = std::upper_bound(offsets_.begin() + static_cast<std::ptrdiff_t>(first_), offsets_.end(), have);
    const auto end = static_cast<std::size_t>(behind - offsets_.begin()) - 1;
    std::vector<std::uint32_t> words(offsets_[end] - begin);
    const std::size_t bytes = words.size() * sizeof(std::uint32_t);
    if (bytes > 0) std::memcpy(words.data(), begun_.data(), bytes);
    std::vector<std::uint64_t> offsets;
    for (std::size_t row = first_; row <= end; ++row) offsets.push_back(offsets_[row] - begin);
    RowView rows;
    rows.count = end - first_;
    rows.offsets = offsets.data();
    rows.words = words.data();
    if (lists_fault(rows, shape_) != nullptr) throw BadRequest("rows that are no sets");
    for (std::size_t done = 0; done < rows.count; done += calibration_step_rows) {
        const std::size_t some = std::min(calibration_step_rows, rows.count - done);
        recall_->add(rows.slice(done, some), signatures_.data() + (first_ + done) * hashes_.signature_bytes(),
                     first_ + done, dead_, caller_alone());
    }
    begun_.erase(begun_.begin(), begun_.begin() + static_cast<std::ptrdiff_t>(bytes));
    first_ = end;
}

}  // namespace

std::unique_ptr<Builder> make_set_calibrator(const IndexShape& shape, const ParameterList& options)
{
    return std::make_unique<SetCalibrator>(shape, functions_of_sets(shape, options));
}

}  // namespace pgwarp::matchcount
