// The rows of a build that stream to a builder, and the sample that it is trained on (protocol/build_sample.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "methods/row_stream.h"
#include "methods/rows/packed_rows.h"

namespace pgwarp
{

class StreamedRows
{
public:
    // `stream` outlives this.
    StreamedRows(const IndexShape& shape, RowStream& stream);

    // As RowStream::wanted_sample().
    std::uint64_t wanted_sample(std::uint64_t rows) const { return stream_.wanted_sample(rows); }
    // Takes a piece of the sample, or ends it and trains; returns false for other arrays. Where memory is short, as by
    // a limit of the address space, the sample is dropped, and the builder stays untrained. Not during append(). Throws
    // BadRequest.
    bool give(const ArrayShape& array, std::span<const std::byte> bytes, const CancelToken& cancel, ThreadPool& pool);
    // Whether rows stream: the builder was trained.
    bool is_trained() const { return trained_; }
    // Checks rows, in a copy, and passes them on; thread-safe. Throws BadRequest.
    void append(std::span<const Tid> tids, const RowView& rows, const CancelToken& cancel, ThreadPool& pool);
    // Brings the rows into tid order, and ends the stream.
    void finish(const BuildProgress& progress, ThreadPool& pool);
    // In the order of arrival until finish().
    std::span<const Tid> tids() const { return {reinterpret_cast<const Tid*>(tids_->row(0)), size_}; }

private:
    void take_sample(std::span<const std::byte> bytes);
    void train(std::uint64_t rows, const CancelToken& cancel, ThreadPool& pool);
    std::size_t reserve(std::span<const Tid> tids);

    const IndexShape shape_;
    RowStream& stream_;
    std::optional<RowBuffer> sample_;  // from its first piece until the builder is trained
    bool dropped_ = false;             // the sample
    std::atomic<bool> trained_{false};
    std::mutex mutex_;
    std::optional<PackedRows> tids_;  // once the builder is trained
    std::size_t size_ = 0;
};

// Returns the rows of a builder that streams them; null for another, and for rows with attributes.
std::unique_ptr<StreamedRows> make_streamed_rows(const IndexShape& shape, Builder& builder);

}  // namespace pgwarp
