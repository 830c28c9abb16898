#include "matchcount/sparse_mirror.h"

#include <algorithm>
#include <new>
#include <vector>

#include "device/wait.h"
#include "methods/bulk_memory.h"

namespace pgwarp::cuda
{

namespace
{

using matchcount::SparseElement;
using matchcount::SparseSlices;

constexpr char purpose[] = "matchcount sparse vectors";
constexpr char sending[] = "loading sparse vectors";
constexpr std::uint32_t positions_at_once = 1U << 17;
constexpr std::size_t elements_at_once = std::size_t{1} << 23;

}  // namespace

SparseMirror::SparseMirror(const pgwarp::matchcount::SparseIndex& index, const matchcount::SparseTuning& tuning,
                           MemoryPool& memory, const Context::Lease& stream, ThreadPool& pool)
    : form_(index, tuning, pool)
{
    scored_.order = form_.order();
    scored_.dimensions = form_.columns();
    scored_.padded_dimensions = form_.columns();
    scored_.padded_positions = form_.padded_positions();
    scored_.bounds.kind = ScoreKind::half_dot;
    scored_.bounds.metric = index.metric();
    if (form_.rows() == 0 || !in_range()) return;
    allocate(memory, stream, pool);
    send_columns(stream, pool);
    send_lists(stream, pool);
    send_rows(index, stream, pool);
    stream.stream().synchronize();
}

void SparseMirror::allocate(MemoryPool& memory, const Context::Lease& stream, ThreadPool& pool)
{
    const std::size_t halves = std::size_t{form_.padded_positions()} * form_.columns();
    scored_.halves = DeviceArray<__half>(memory, halves, purpose, stream);
    scored_.penalties = DeviceArray<float>(memory, form_.padded_positions(), purpose, stream);
    starts_ = DeviceArray<std::uint32_t>(memory, std::size_t{form_.slices()} * (form_.lists() + 1), purpose, stream);
    const std::uint64_t quads = form_.count_quads(pool);
    if (quads >> 32 != 0) throw std::bad_alloc();
    postings_ = DeviceArray<uint4>(memory, quads, purpose, stream);
    offsets_ = DeviceArray<std::uint64_t>(memory, std::size_t{form_.rows()} + 1, purpose, stream);
    elements_ = DeviceArray<SparseElement>(memory, form_.elements(), purpose, stream);
    squares_ = DeviceArray<double>(memory, form_.rows(), purpose, stream);
}

void SparseMirror::send_columns(const Context::Lease& stream, ThreadPool& pool)
{
    BulkVector<half_bits> halves;
    halves.resize(std::size_t{std::min(positions_at_once, form_.padded_positions())} * form_.columns());
    for (std::uint32_t first = 0; first < form_.padded_positions(); first += positions_at_once) {
        const std::uint32_t count = std::min(positions_at_once, form_.padded_positions() - first);
        const std::size_t written = std::size_t{count} * form_.columns();
        form_.write_halves(first, count, halves.data(), pool);
        send(scored_.halves.data() + std::size_t{first} * form_.columns(), halves.data(), written * sizeof(half_bits),
             stream, sending);
    }
    const std::vector<float> penalties = form_.penalties();
    send(scored_.penalties.data(), penalties.data(), scored_.penalties.bytes(), stream, sending);
}

void SparseMirror::send_lists(const Context::Lease& stream, ThreadPool& pool)
{
    const std::uint32_t step = std::max(1U, positions_at_once / form_.slice());
    std::uint64_t base = 0;
    for (std::uint32_t first = 0; first < form_.slices(); first += step) {
        const SparseSlices slices = form_.make_slices(first, std::min(step, form_.slices() - first), base, pool);
        send(starts_.data() + std::size_t{first} * (form_.lists() + 1), slices.starts.data(),
             slices.starts.size() * sizeof(std::uint32_t), stream, sending);
        if (!slices.postings.empty())
            send(postings_.data() + base, slices.postings.data(), slices.postings.size() * sizeof(std::uint32_t),
                 stream, sending);
        base += slices.postings.size() / matchcount::quad_postings;
    }
}

void SparseMirror::send_rows(const pgwarp::matchcount::SparseIndex& index, const Context::Lease& stream,
                             ThreadPool& pool)
{
    std::vector<std::uint64_t> offsets(std::size_t{form_.rows()} + 1);
    for (std::uint32_t row = 0; row < form_.rows(); ++row) offsets[row + 1] = offsets[row] + index.row(row).count;
    send(offsets_.data(), offsets.data(), offsets_.bytes(), stream, sending);
    send(squares_.data(), form_.squares().data(), squares_.bytes(), stream, sending);
    // The elements of rows are neighbours.
    const SparseView all = index.row(0);
    BulkVector<SparseElement> elements;
    elements.resize(std::min<std::size_t>(elements_at_once, form_.elements()));
    for (std::size_t first = 0; first < form_.elements(); first += elements_at_once) {
        const std::size_t count = std::min<std::size_t>(elements_at_once, form_.elements() - first);
        pool.parallel_for(count, std::size_t{1} << 16, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) elements[i] = {all.indices[first + i], all.values[first + i]};
        });
        send(elements_.data() + first, elements.data(), count * sizeof(SparseElement), stream, sending);
    }
}

matchcount::SparseListsView SparseMirror::lists() const
{
    return {form_.lists(), form_.slice(), form_.slices(), starts_.data(), postings_.data()};
}

matchcount::SparseRowsView SparseMirror::rows() const
{
    return {offsets_.data(), elements_.data(), squares_.data(), form_.elements(), form_.rows()};
}

std::uint64_t SparseMirror::expected_bytes(std::uint64_t rows, std::uint64_t elements)
{
    const matchcount::SparseTuning tuning;
    return rows * (tuning.columns * sizeof(half_bits) + 24) +
           elements * (sizeof(SparseElement) + 2 * sizeof(std::uint32_t));
}

}  // namespace pgwarp::cuda
