// Rows in chunks, each of which is dropped once the builder has it.
#include "engine/build/streamed_rows.h"

#include <cstring>

#include "engine/mirror/vectors.h"
#include "methods/bulk_memory.h"
#include "methods/given_arrays.h"
#include "methods/rows/row_order.h"
#include "protocol/build_sample.h"

namespace pgwarp
{

StreamedRows::StreamedRows(const IndexShape& shape, RowStream& stream) : shape_(shape), stream_(stream) {}

bool StreamedRows::give(const ArrayShape& array, std::span<const std::byte> bytes, const CancelToken& cancel,
                        ThreadPool& pool)
{
    const bool ends = is_named(array, array_sample_of);
    if (!ends && !is_named(array, array_sample_rows)) return false;
    if (trained_ || size_ > 0) throw BadRequest("a sample after the rows");
    const std::uint64_t width = ends ? sizeof(std::uint64_t) : sizeof(Tid) + sizeof(float) * shape_.dimensions;
    // A product of the rows would wrap.
    if (bytes.size() % width != 0 || array.rows != bytes.size() / width || (ends && array.rows != 1))
        throw BadRequest("a sample of another shape");
    try {
        if (ends) {
            std::uint64_t rows = 0;
            std::memcpy(&rows, bytes.data(), sizeof(rows));
            train(rows, cancel, pool);
        } else if (!dropped_) {
            take_sample(bytes);
        }
    } catch (const std::bad_alloc&) {
        dropped_ = true;
        sample_.reset();
        tids_.reset();
    }
    return true;
}

void StreamedRows::train(std::uint64_t rows, const CancelToken& cancel, ThreadPool& pool)
{
    if (dropped_) return;
    if (!sample_ || sample_->size() == 0 || rows > most_packed_rows)
        throw BadRequest("a sample of another number of rows");
    sample_->sort_by_tid(&pool);
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, &cancel};
    tids_.emplace(sizeof(Tid));
    stream_.train(*sample_, rows, progress, pool);
    trained_ = true;
    sample_.reset();
}

void StreamedRows::take_sample(std::span<const std::byte> bytes)
{
    if (!sample_) sample_.emplace(shape_.dimensions);
    std::vector<float> row(shape_.dimensions);
    const std::size_t width = sizeof(Tid) + sizeof(float) * row.size();
    for (; !bytes.empty(); bytes = bytes.subspan(width)) {
        Tid tid;
        std::memcpy(&tid, bytes.data(), sizeof(tid));
        std::memcpy(row.data(), bytes.data() + sizeof(tid), sizeof(float) * row.size());
        prepare_vectors(static_cast<Metric>(shape_.metric), row, row.size());
        sample_->append({&tid, 1}, row);
    }
}

std::size_t StreamedRows::reserve(std::span<const Tid> tids)
{
    const std::lock_guard lock(mutex_);
    const std::size_t first = size_;
    if (tids.size() > most_packed_rows - first) throw BadRequest("too many rows for one build");
    tids_->grow(first + tids.size());
    std::memcpy(tids_->row(first), tids.data(), tids.size_bytes());
    size_ += tids.size();
    return first;
}

void StreamedRows::append(std::span<const Tid> tids, const RowView& rows, const CancelToken& cancel, ThreadPool& pool)
{
    if (rows.count != tids.size()) throw BadRequest("rows and addresses differ in number");
    if (tids.empty()) return;
    BulkVector<float> copy(rows.count * rows.width);
    std::memcpy(copy.data(), rows.values, copy.size() * sizeof(float));
    prepare_vectors(static_cast<Metric>(shape_.metric), copy, shape_.dimensions);
    stream_.append(reserve(tids), tids, copy, &cancel, pool);
}

void StreamedRows::finish(const BuildProgress& progress, ThreadPool& pool)
{
    const std::vector<std::uint32_t> order = order_of(tids(), pool);
    tids_->put_in_order(order, pool);
    stream_.finish(order, progress, pool);
}

std::unique_ptr<StreamedRows> make_streamed_rows(const IndexShape& shape, Builder& builder)
{
    RowStream* const stream = builder.row_stream();
    if (stream == nullptr || row_layout(shape.element) != RowLayout::dense || shape.attribute_count > 0) return nullptr;
    return std::make_unique<StreamedRows>(shape, *stream);
}

}  // namespace pgwarp
