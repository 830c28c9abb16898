// Values of stored rows: canonical distances, or lower bounds where the stored form is rounded.
#include "methods/pqtree/stored_rows.h"

#include <algorithm>

#include "methods/arrays.h"
#include "methods/bounds.h"

namespace pgwarp
{

StoredRows::StoredRows(Metric metric, const TreeArrays& arrays) : metric_(metric), arrays_(arrays)
{
    const std::size_t values = arrays.rows * arrays.dimensions;
    if (arrays.options.keeps_full()) vectors_.resize(values);
    if (arrays.options.keeps_half()) halves_.resize(values);
}

bool StoredRows::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array == array_vectors && arrays_.options.keeps_full()) {
        write_piece(std::span<float>(vectors_), offset, bytes);
    } else if (array == array_half && arrays_.options.keeps_half()) {
        write_piece(std::span<half_bits>(halves_), offset, bytes);
    } else {
        return false;
    }
    return true;
}

ResultKind StoredRows::result_kind() const
{
    if (arrays_.options.keeps_full()) return promise_of_vectors(metric_ == Metric::cosine).kind;
    return arrays_.options.keeps_half() ? ResultKind::lower_bound : ResultKind::approximate;
}

double StoredRows::bound_width(const float* query) const
{
    if (arrays_.options.keeps_full()) return pgwarp::bound_width(metric_, 0, 1);
    if (!arrays_.options.keeps_half()) return 0;
    return pgwarp::bound_width(metric_, arrays_.half.scale[1], canonical_norm(query, arrays_.dimensions));
}

double StoredRows::value(const float* query, double query_norm, std::uint32_t row) const
{
    const std::size_t dimensions = arrays_.dimensions;
    const std::size_t first = std::size_t{row} * dimensions;
    if (arrays_.options.keeps_full()) {
        const double distance = canonical_distance(metric_, query, vectors_.data() + first, dimensions);
        return metric_ == Metric::cosine ? lower_bound(metric_, distance, 0, 1) : distance;
    }
    thread_local std::vector<float> decoded;
    decoded.resize(dimensions);
    if (arrays_.options.keeps_half()) {
        arrays_.half.codec.decode(halves_.data() + first, decoded.data());
        const double distance = decoded_distance(metric_, query, decoded.data(), dimensions);
        return lower_bound(metric_, distance, arrays_.half.scale[1], query_norm);
    }
    const std::uint8_t* code = arrays_.codes.data() + std::size_t{row} * arrays_.options.code_bytes();
    decode_lines(arrays_.tree, arrays_.lines, code + arrays_.options.line_offset(), decoded.data());
    // Points of lines are not of unit length; the squared distance of unit vectors is twice their cosine distance.
    if (metric_ == Metric::cosine) return canonical_l2_squared(query, decoded.data(), dimensions) / 2;
    return canonical_distance(metric_, query, decoded.data(), dimensions);
}

void StoredRows::prefetch(std::uint32_t row) const
{
    constexpr std::size_t line = 64;
    constexpr std::size_t most = 16 * line;  // the hardware prefetcher loads the rest
    const std::size_t first = std::size_t{row} * arrays_.dimensions;
    const auto* bytes = vectors_.empty() ? reinterpret_cast<const std::byte*>(halves_.data() + first)
                                         : reinterpret_cast<const std::byte*>(vectors_.data() + first);
    const std::size_t count = arrays_.dimensions * (vectors_.empty() ? sizeof(half_bits) : sizeof(float));
    if (!arrays_.options.keeps_vectors()) return;
    for (std::size_t at = 0; at < std::min(count, most); at += line) __builtin_prefetch(bytes + at);
}

}  // namespace pgwarp
